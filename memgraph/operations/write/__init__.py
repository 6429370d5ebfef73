"""Write memories, edges and turns."""
