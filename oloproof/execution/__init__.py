"""Running cases through the stages: retrieve, assemble, generate."""
