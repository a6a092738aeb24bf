-- Who gave what: the account that made a token, and the account by whose invitation an operator got
-- in, both as the account's id, or that of the one by which it was invited itself, and so on. Empty:
-- it was given at the command line, or before this was known.
ALTER TABLE tokens ADD COLUMN maker TEXT NOT NULL DEFAULT '';
ALTER TABLE operators ADD COLUMN inviter TEXT NOT NULL DEFAULT '';
-- Who gave an operator its roles last, as on record.
ALTER TABLE operators ADD COLUMN roles_by TEXT NOT NULL DEFAULT '';
