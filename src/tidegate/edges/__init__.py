"""Where requests come in: stdio and HTTP. They translate, and decide nothing."""
