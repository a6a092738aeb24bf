-- The policy of a source in neutral words, in place of one product's.
ALTER TABLE sources RENAME COLUMN external_access TO access;
ALTER TABLE sources RENAME COLUMN ai_policy TO agents;
ALTER TABLE sources RENAME COLUMN safe_mode TO approval_for;
UPDATE sources SET rules = json_set(rules, '$.changes', 'deny') WHERE approval_for = 'readOnly';
UPDATE sources SET
    access = CASE access
        WHEN 'blocked' THEN 'none' WHEN 'readOnly' THEN 'read' WHEN 'readWrite' THEN 'write' END,
    agents = CASE agents
        WHEN 'alwaysAllow' THEN 'allow' WHEN 'askEachTime' THEN 'ask' WHEN 'never' THEN 'deny' END,
    approval_for = CASE approval_for
        WHEN 'alert' THEN 'writes' WHEN 'safeMode' THEN 'writes'
        WHEN 'alertFull' THEN 'everything' WHEN 'safeModeFull' THEN 'everything'
        WHEN 'silent' THEN 'nothing' WHEN 'readOnly' THEN 'nothing' END;
