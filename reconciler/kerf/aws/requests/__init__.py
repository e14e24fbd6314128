"""How AWS is asked: clients, pace, batches, pages; errors and answers that are checked."""
