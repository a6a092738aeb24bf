"""The commands of JDBC: `tidegate driver`, `tidegate fixture`."""
