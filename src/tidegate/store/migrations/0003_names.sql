-- A dry run has one name everywhere.

ALTER TABLE approvals RENAME COLUMN rehearsal TO dry_run;
