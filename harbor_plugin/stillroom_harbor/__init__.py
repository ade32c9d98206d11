"""The Python half of Stillroom: process sandboxes, a small agent and a resident trial runner for harbor."""
