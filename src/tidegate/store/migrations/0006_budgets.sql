-- Budgets: `amount` units of `measure` in each `span` of time. Of `token` (a name), `owner` and
-- `source` the empty ones mean any. A change counts on the next call, so it is a change of rights.
CREATE TABLE budgets (
    id TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    owner TEXT NOT NULL,
    source TEXT NOT NULL,
    measure TEXT NOT NULL,
    span TEXT NOT NULL,
    amount INTEGER NOT NULL,
    changed_at REAL NOT NULL,
    changed_by TEXT NOT NULL,
    UNIQUE (token, owner, source, measure, span)
) STRICT, WITHOUT ROWID;
INSERT INTO generations VALUES ('budgets', 0);
CREATE TRIGGER budgets_added AFTER INSERT ON budgets BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'budgets';
END;
CREATE TRIGGER budgets_changed AFTER UPDATE ON budgets BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'budgets';
END;
CREATE TRIGGER budgets_removed AFTER DELETE ON budgets BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'budgets';
END;

-- What processes have taken of a budget in the window that began then, spent or not; `granted` is
-- what the last write gave, and `amount` the budget at that time.
CREATE TABLE budget_use (
    budget TEXT NOT NULL,
    began INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    granted INTEGER NOT NULL,
    PRIMARY KEY (budget, began)
) STRICT, WITHOUT ROWID;
