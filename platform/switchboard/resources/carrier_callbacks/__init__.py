"""Where carriers call back, whatever it is about; what they tell is handed down to calls and texts."""
