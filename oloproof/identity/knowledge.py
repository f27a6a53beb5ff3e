"""What is known about code outside the project, as far as it decides what a stage reaches.

Everything that is not listed here is taken to be capable of anything: its use makes a definition count for more
stages, never for fewer.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Set


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


BUILTIN_NAMES = frozenset(dir(builtins))
STANDARD_LIBRARY = frozenset(sys.stdlib_module_names)

#: Modules of ours that the user's app imports; they never count.
OWN = "oloproof"
RAG_SYSTEM = frozenset({"oloproof.rag_system", "oloproof.contract.rag_system"})

#: Methods that change the object they are called on.
MUTATORS = words(
    "append appendleft extend extendleft insert add update setdefault pop popitem popleft remove discard clear "
    "sort reverse rotate put put_nowait push register difference_update intersection_update "
    "symmetric_difference_update __setitem__ __delitem__ __setattr__ set"
)

#: Calls that hand a function or class to nobody who reads its docstring or annotations.
PLAIN_BUILTINS = words(
    "isinstance issubclass map filter sorted min max any all sum list tuple set dict iter next callable id len "
    "enumerate zip reversed bool type"
)

#: Attributes through which code looks at whatever is loaded.
SPIES = frozenset({"__subclasses__", "__globals__", "f_globals", "f_back", "f_builtins", "__builtins__"})
#: Attributes and functions through which code reads its own source text.
SOURCE_READERS = frozenset({"getsource", "getsourcelines", "getsourcefile", "getcomments", "findsource"})
#: Attributes of functions and classes that show docstrings and annotations.
DOCUMENTATION = frozenset({"__doc__", "__annotations__", "__signature__", "__text_signature__"})

#: Outside code through which the project itself reads docstrings, annotations and signatures.
DOCUMENTATION_READERS = frozenset(
    ("builtins.help", "doctest", "inspect", "pydoc", "typing.get_type_hints", "unittest")
)
#: Packages that do not look at the docstrings and annotations of functions and classes that they are given.
INDIFFERENT_PACKAGES = words(
    "bm25s bs4 chromadb diskcache elasticsearch faiss hnswlib httpx joblib jieba loguru lxml nltk numba numpy "
    "opensearchpy orjson pandas pinecone polars psycopg psycopg2 pymilvus qdrant_client rank_bm25 rapidfuzz redis "
    "regex requests scipy sentence_transformers sklearn snowballstemmer spacy sqlite_vec Stemmer structlog tenacity "
    "tiktoken tokenizers toml torch tqdm ujson usearch voyager weaviate yaml"
)

#: Bring the whole module in which they are used: code from text, and names from text.
REFLECTION = frozenset(
    f"builtins.{name}" for name in ("eval", "exec", "compile", "globals", "__builtins__", "__dict__")
)
#: Bring every project module in: they find modules, classes and functions by names made at run time.
DYNAMIC_IMPORTS = words(
    "builtins.__import__ importlib.import_module importlib.reload importlib.__import__ "
    "importlib.util.spec_from_file_location importlib.util.module_from_spec importlib.util.find_spec "
    "importlib.metadata.entry_points importlib.machinery importlib.abc pkgutil.walk_packages "
    "pkgutil.iter_modules pkgutil.resolve_name pkgutil.get_loader pkgutil.find_loader runpy imp zipimport "
    "pydoc.locate sys.modules sys.meta_path sys.path_hooks sys._getframe inspect.stack inspect.currentframe "
    "inspect.getmodule inspect.getmembers gc.get_objects gc.get_referrers "
    "pickle.load pickle.loads pickle.Unpickler _pickle shelve.open marshal "
    "joblib.load dill.load dill.loads cloudpickle.load cloudpickle.loads torch.load pandas.read_pickle "
    "yaml.unsafe_load yaml.unsafe_load_all yaml.full_load yaml.UnsafeLoader yaml.Loader yaml.FullLoader jsonpickle "
    "pkg_resources.iter_entry_points pkg_resources.load_entry_point stevedore pluggy hydra "
    "django.utils.module_loading werkzeug.utils.import_string lazy_loader"
)
#: Modules that are as good as what is in them when they are passed on.
DYNAMIC_MODULES = words("builtins importlib sys pickle dill cloudpickle shelve pkgutil gc joblib")
#: Used inside a function, where it cannot be known what will be found.
IMPORT_PATHS = frozenset({"sys.path"})
#: Those of them that are harmless when their argument is a literal: it is followed like an import.
IMPORT_CALLS = frozenset({"builtins.__import__", "importlib.import_module", "importlib.__import__"})

#: Functions called for what they do, which is of no consequence for anything else.
HARMLESS_STATEMENTS = frozenset(("builtins.print", "builtins.super", "logging", "time", "warnings.warn"))
#: Decorators that do nothing to anything but the decorated object, and read neither docstring nor annotations.
PURE_DECORATORS = RAG_SYSTEM | words(
    "builtins.staticmethod builtins.classmethod builtins.property functools contextlib abc "
    "dataclasses.dataclass enum typing typing_extensions warnings.deprecated async_lru.alru_cache attr attrs "
    "backoff.on_exception backoff.on_predicate cachetools.cached cachetools.cachedmethod langfuse.observe "
    "langfuse.decorators.observe langsmith.traceable logfire.instrument mlflow.trace numba.jit numba.njit "
    "opik.track pydantic.computed_field pydantic.field_serializer pydantic.field_validator "
    "pydantic.model_serializer pydantic.model_validator pydantic.root_validator pydantic.validator "
    "tenacity.retry torch.inference_mode torch.no_grad weave.op"
)
#: Decorators that keep nothing of what the function gives from one call to the next.
FORGETFUL_DECORATORS = words(
    "builtins.staticmethod builtins.classmethod builtins.property functools.wraps contextlib abc typing "
    "typing_extensions warnings.deprecated backoff tenacity.retry langfuse.observe langfuse.decorators.observe "
    "langsmith.traceable numba torch.inference_mode torch.no_grad weave.op"
)
#: Functions that set what other functions beside them give.
SEEDS = words("random.seed numpy.random.seed torch.manual_seed locale.setlocale os.chdir decimal.setcontext")
#: Functions that change what they are given.
ARGUMENT_CHANGERS = words(
    "heapq random.shuffle bisect.insort bisect.insort_left bisect.insort_right operator builtins.next builtins.setattr "
    "builtins.delattr functools.reduce collections.deque.append numpy.copyto numpy.put numpy.random.shuffle"
)
#: Decorators that do nothing to anything else, but show docstring and annotations to a model or a user.
QUIET_DECORATORS = words(
    "click.command langchain.tools.tool langchain_core.tools.tool pydantic.dataclasses.dataclass "
    "pydantic.validate_call smolagents.tool"
)
#: Base classes that never call a method of a subclass and keep no list of subclasses.
CLOSED_BASES = words("builtins.object abc.ABC typing.Generic typing.Protocol typing_extensions.Protocol")
#: Packages whose base classes keep no list of subclasses that something else would look into.
QUIET_BASES = words(
    "builtins anthropic attrs dspy instructor langchain langchain_community langchain_core langgraph "
    "llama_index openai pydantic pydantic_settings sentence_transformers sklearn torch.nn torch.utils.data "
    "typing_extensions"
)


def listed(dotted: str, names: Set[str]) -> bool:
    """Whether a dotted name is one of `names` or lies below one of them."""
    while dotted:
        if dotted in names:
            return True
        dotted = dotted.rpartition(".")[0]
    return False


def top_level(dotted: str) -> str:
    return dotted.partition(".")[0]


def is_quiet_base(dotted: str) -> bool:
    """Whether deriving from this outside class leaves no trace anywhere else."""
    return top_level(dotted) in STANDARD_LIBRARY or listed(dotted, QUIET_BASES)
