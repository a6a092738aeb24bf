-- Counters of the topics that processes wait for (`store/versions.py`), beside those of sources,
-- tokens and budgets. The transaction that changes a topic adds one, so they are in order of commit.
INSERT INTO generations VALUES ('approvals', 0), ('operators', 0), ('pairings', 0), ('tabs', 0);
CREATE TRIGGER approvals_added AFTER INSERT ON approvals BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'approvals';
END;
CREATE TRIGGER approvals_changed AFTER UPDATE ON approvals BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'approvals';
END;
CREATE TRIGGER approvals_removed AFTER DELETE ON approvals BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'approvals';
END;
CREATE TRIGGER operators_added AFTER INSERT ON operators BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'operators';
END;
CREATE TRIGGER operators_changed AFTER UPDATE ON operators BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'operators';
END;
CREATE TRIGGER operators_removed AFTER DELETE ON operators BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'operators';
END;
CREATE TRIGGER pairings_added AFTER INSERT ON pairings BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'pairings';
END;
CREATE TRIGGER pairings_changed AFTER UPDATE ON pairings BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'pairings';
END;
CREATE TRIGGER pairings_removed AFTER DELETE ON pairings BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'pairings';
END;
CREATE TRIGGER operator_sessions_added AFTER INSERT ON operator_sessions BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'operators';
END;
CREATE TRIGGER operator_sessions_confirmed AFTER UPDATE OF confirmed_at ON operator_sessions
WHEN OLD.confirmed_at IS NOT NEW.confirmed_at BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'operators';
END;
CREATE TRIGGER operator_sessions_removed AFTER DELETE ON operator_sessions BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'operators';
END;
CREATE TRIGGER tab_events_added AFTER INSERT ON tab_events BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tabs';
END;
