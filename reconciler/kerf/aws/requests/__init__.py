"""How AWS is asked: clients, service models, pace, batches, pages; errors and answers that are checked."""
