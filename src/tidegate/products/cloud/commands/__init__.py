"""The commands of cloud APIs: `tidegate cloud`."""
