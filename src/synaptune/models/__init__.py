"""Backbones of the paper, loaders for published checkpoints, and the training of source models."""
