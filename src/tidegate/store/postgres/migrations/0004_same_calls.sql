-- By what a call is found that its client sends again (protocol/long_calls.py); empty if it comes
-- back in another way. Processes wait for new ones.
INSERT INTO tidegate.generations VALUES ('tasks', 0);
ALTER TABLE tidegate.tasks ADD COLUMN call text COLLATE "C" NOT NULL DEFAULT '';
CREATE CONSTRAINT TRIGGER count_changes AFTER INSERT ON tidegate.tasks
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.call <> '')
    EXECUTE FUNCTION tidegate.count_change('tasks');
