// Layout of the two binary messages of sync. Plain numbers: this file is compiled by both TypeScript and
// AssemblyScript. Everything is little-endian; offsets and sizes are bytes.

/** Longest name, address or salt, in bytes of UTF-8. */
export const MAX_NAME_BYTES = 256;
/** Longest engine id, in bytes: it becomes a header's value on every response. */
export const MAX_ENGINE_ID_BYTES = 64;
/** Largest number of rows in any section. */
export const MAX_ROWS = 1 << 20;

// --- Snapshot: header, sections of fixed rows (each starts at a multiple of 8), strings. ---

/** `WSNP`. */
export const SNAPSHOT_MAGIC = 0x504e5357;
export const SNAPSHOT_FORMAT = 2;

// Header. A text is a u32 offset from the start of the snapshot and a u32 length.
export const HEADER_MAGIC = 0; // u32
export const HEADER_FORMAT = 4; // u32
export const HEADER_LENGTH = 8; // u32, of the whole snapshot
export const HEADER_CHECKSUM = 16; // u64, hash64 of everything after it with seed 0
export const HEADER_CHECKED = 24; // where the checksum's input begins
export const HEADER_VERSION = 24; // u64
export const HEADER_PLAN_ID = 32; // u64
export const HEADER_ISSUED_AT = 40; // u64, milliseconds since the epoch
export const HEADER_FRONTEND = 48; // text
export const HEADER_SALT = 56; // text
// A section is a u32 offset and a u32 count of rows.
export const HEADER_MODELS = 64;
export const HEADER_POOLS = 72;
export const HEADER_POOL_ENGINES = 80;
export const HEADER_SEGMENTS = 88;
export const HEADER_ENGINES = 96;
export const HEADER_REPLICAS = 104;
export const HEADER_NEEDS = 112;
export const HEADER_MODEL_NEEDS = 120;
export const HEADER_MODEL_POOLS = 128;
export const HEADER_STRINGS = 136; // count is bytes
export const HEADER_SIZE = 144;

/** Models ascend by hash, so that a name is found by binary search. */
export const MODEL_HASH = 0; // u64, id64 of the name
export const MODEL_NAME = 8; // text
export const MODEL_NEEDS_START = 16; // u32
export const MODEL_NEEDS_COUNT = 20; // u32
export const MODEL_POOLS_START = 24; // u32; there are 2 to the power of the count of needs
export const MODEL_SIZE = 32;

// The ranges of rows that models have in MODEL_NEEDS and MODEL_POOLS adjoin in the order of the models and use up the
// section; so do the ranges in POOL_ENGINES and SEGMENTS of the pools, and the replicas of the engines.

/** A need that makes a difference to a model, ascending within the model. */
export const MODEL_NEED_SIZE = 4; // u32
export const MAX_MODEL_NEEDS = 6;
/** The pool for a combination of a model's needs, or NO_POOL. */
export const MODEL_POOL_SIZE = 4; // u32
export const NO_POOL = 0xffffffff;

export const MAX_NEEDS = 64;
export const NEED_ID = 0; // text
export const NEED_KIND = 8; // u32, NEED_BY_...
export const NEED_NUMBER = 12; // u32, a body feature, or tokens
export const NEED_NAME = 16; // text, of a header
export const NEED_VALUE = 24; // text, of header (empty: any), path or tenant
export const NEED_SIZE = 32;

export const NEED_BY_HEADER = 0;
export const NEED_BY_PATH = 1;
export const NEED_BY_TENANT = 2;
export const NEED_BY_BODY = 3;
export const NEED_BY_PROMPT_TOKENS = 4;

export const FEATURE_IMAGES = 0;
export const FEATURE_AUDIO = 1;
export const FEATURE_FILES = 2;
export const FEATURE_TOOLS = 3;
export const FEATURE_STREAM = 4;
export const FEATURES = 5;

export const POOL_HASH = 0; // u64, id64 of the id
export const POOL_ID = 8; // text
export const POOL_CLUSTER = 16; // text
export const POOL_ENGINES_START = 24; // u32
export const POOL_ENGINES_COUNT = 28; // u32
export const POOL_SEGMENTS_START = 32; // u32
export const POOL_SEGMENTS_COUNT = 36; // u32
export const POOL_RETRY_RATIO = 40; // f64
export const POOL_SHED_FRACTION = 48; // f64
export const POOL_SIZE = 56;

/** A pool's eligible engine, ascending within the pool. */
export const POOL_ENGINE_SIZE = 4; // u32

export const SEGMENT_START = 0; // u32, a point of the hash space
export const SEGMENT_OWNER = 4; // u32, engine
export const SEGMENT_BACKUP = 8; // u32, engine or NO_ENGINE
export const SEGMENT_SIZE = 12;
export const NO_ENGINE = 0xffffffff;

export const ENGINE_HASH = 0; // u64, id64 of the id
export const ENGINE_ID = 8; // text
export const ENGINE_REPLICAS_START = 16; // u32
export const ENGINE_REPLICAS_COUNT = 20; // u32
export const ENGINE_SIZE = 24;

export const REPLICA_SEED = 0; // u64, id64 of the address: the replica's seed in rendezvous hashing
export const REPLICA_ADDRESS = 8; // text
export const REPLICA_FLAGS = 16; // u32
export const REPLICA_SIZE = 24;
export const REPLICA_READY = 1; // flag

// --- Usage report: header, then a block for each VM: block header, rows of pools, rows of engines. ---

/** `WUSE`. */
export const REPORT_MAGIC = 0x45535557;
export const REPORT_FORMAT = 1;

export const REPORT_VMS = 8; // u32, count of blocks
export const REPORT_HEADER_SIZE = 16;

export const VM_INCARNATION = 0; // u64
export const VM_POOLS = 8; // u32, count of rows
export const VM_ENGINES = 12; // u32, count of rows
export const VM_HEADER_SIZE = 16;

// Counters are u64 below 2^53.
export const POOL_USAGE_POOL = 0; // u64, hash
export const POOL_USAGE_OFFERED = 8;
export const POOL_USAGE_CLIENT_RETRIES = 16;
export const POOL_USAGE_SHED = 24;
export const POOL_USAGE_UNAVAILABLE = 32;
export const POOL_USAGE_WITHOUT_KEY = 40;
export const POOL_USAGE_SIZE = 48;

export const ENGINE_USAGE_POOL = 0; // u64, hash
export const ENGINE_USAGE_ENGINE = 8; // u64, hash
export const ENGINE_USAGE_PLANNED = 16;
export const ENGINE_USAGE_DIVERTED = 24;
export const ENGINE_USAGE_ENDED = 32;
export const ENGINE_USAGE_FAILURES = 40;
export const ENGINE_USAGE_STATUS_2XX = 48;
export const ENGINE_USAGE_STATUS_4XX = 56;
export const ENGINE_USAGE_STATUS_5XX = 64;
export const ENGINE_USAGE_NO_RESPONSE = 72;
export const ENGINE_USAGE_RETRIES = 80;
export const ENGINE_USAGE_FIRST_BYTE_SUM = 88; // f64, seconds
export const ENGINE_USAGE_FIRST_BYTE_COUNT = 96;
export const ENGINE_USAGE_SIZE = 104;
