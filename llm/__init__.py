"""Sokoban by RL fine-tuning of a language model."""
