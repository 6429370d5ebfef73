"""How fast the console answers, and how soon a browser has drawn."""
