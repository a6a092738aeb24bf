"""The settings: what they may say, how they are read and followed, where the state is."""
