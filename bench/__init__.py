"""Speed and size, measured against a floor and against peers. Start with README.md."""
