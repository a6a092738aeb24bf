-- The chart of a query tab's results: JSON that the console's page understands, empty without one.
ALTER TABLE tabs ADD COLUMN chart TEXT NOT NULL DEFAULT '';
ALTER TABLE closed_tabs ADD COLUMN chart TEXT NOT NULL DEFAULT '';
