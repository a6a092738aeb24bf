-- Calls that came again after the answer and were refused: how many, the last, and why.
ALTER TABLE approvals ADD COLUMN refused TEXT;
