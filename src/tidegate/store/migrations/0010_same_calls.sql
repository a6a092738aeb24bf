-- By what a call is found that its client sends again (`protocol/long_calls.py`); empty if it comes
-- back in another way. Processes wait for new ones.
INSERT INTO generations VALUES ('tasks', 0);
ALTER TABLE tasks ADD COLUMN call TEXT NOT NULL DEFAULT '';
CREATE TRIGGER calls_added AFTER INSERT ON tasks WHEN NEW.call <> '' BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tasks';
END;
