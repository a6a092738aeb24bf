"""Charts: one specification, a strict subset of Vega-Lite, and the data of its marks. Pure."""
