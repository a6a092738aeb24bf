-- Approvals: what a person was asked, and what was answered.

-- The desk: windows and tabs of the console, which the workbench's tools open and list.

-- Tokens: an allowlist by tag beside the one by name.
ALTER TABLE tokens ADD COLUMN tags TEXT;
DROP TRIGGER tokens_changed;
CREATE TRIGGER tokens_changed
AFTER UPDATE OF name, digest, scope, sources, tags, expires_at, revoked_at ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;

-- Pairing: codes that an operator approved and a client has yet to exchange.

-- Sources: what an operator set beside the settings that have columns (masks, row filters).
ALTER TABLE sources ADD COLUMN rules TEXT NOT NULL DEFAULT '{}';
