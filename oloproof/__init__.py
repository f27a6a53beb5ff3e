"""Oloproof: evaluation of RAG systems stage by stage.

This is the whole surface that a user's app needs; importing it loads the standard library only.
"""

from oloproof.contract import Passage, Retrieval, rag_system

__all__ = ["Passage", "Retrieval", "rag_system"]
__version__ = "0.1.0"
