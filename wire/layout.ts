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
export const SNAPSHOT_FORMAT = 6;

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
export const HEADER_STEERED = 64; // f64, share of keys
// A section is a u32 offset and a u32 count of rows.
export const HEADER_MODELS = 72;
export const HEADER_POOLS = 80;
export const HEADER_POOL_ENGINES = 88;
export const HEADER_SEGMENTS = 96;
export const HEADER_ENGINES = 104;
export const HEADER_REPLICAS = 112;
export const HEADER_NEEDS = 120;
export const HEADER_MODEL_NEEDS = 128;
export const HEADER_MODEL_POOLS = 136;
export const HEADER_CLASSES = 144;
export const HEADER_CLASS_RULES = 152;
export const HEADER_NEAREST = 160;
export const HEADER_STRINGS = 168; // count is bytes
export const HEADER_SIZE = 176;

/** Models ascend by hash, so that a name is found by binary search. */
export const MODEL_HASH = 0; // u64, id64 of the name
export const MODEL_NAME = 8; // text
export const MODEL_NEEDS_START = 16; // u32
export const MODEL_NEEDS_COUNT = 20; // u32
export const MODEL_POOLS_START = 24; // u32; there are 2 to the power of the count of needs
export const MODEL_SIZE = 32;

// The ranges of rows that models have in MODEL_NEEDS and MODEL_POOLS adjoin in the order of the models and use up the
// section; so do the ranges in POOL_ENGINES, SEGMENTS and CLASSES of the pools, and the replicas of the engines.

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
/** By the tokens of the prompt and the most that the answer may have, together. */
export const NEED_BY_TOTAL_TOKENS = 5;
// Only for rules of classes: what a body that was not read would have told is taken as not there.
export const NEED_BY_SERVICE_TIER = 6;
export const NEED_BY_PRIORITY = 7;

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
export const POOL_CLASSES_START = 40; // u32
export const POOL_CLASSES_COUNT = 44; // u32, at least 1
export const POOL_SIZE = 48;

/** A class of a pool: the first is that of priority 0, the others follow, the most important first. */
export const CLASS_PRIORITY = 0; // i32
export const CLASS_RETRY_RATIO = 8; // f64
export const CLASS_SHED_FRACTION = 16; // f64
export const CLASS_SIZE = 24;
export const MAX_CLASSES = 8;
export const MAX_PRIORITY = 100;

/** Which priority requests have: that of the first of these whose need they carry, else 0. */
export const RULE_NEED = 0; // u32
export const RULE_PRIORITY = 4; // i32
export const RULE_SIZE = 8;

/** An engine, the nearest first, for requests that need no model. */
export const NEAREST_SIZE = 4; // u32

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
export const ENGINE_OVERFLOW = 24; // f64, share of its keys that go to their backups
export const ENGINE_REPLICA_LIMIT = 32; // f64, requests in flight from one Envoy per ready replica
export const ENGINE_PROBE = 40; // text, path asked for to measure the round trip; empty: none is
export const ENGINE_BUSY = 48; // f64, requests in flight from one Envoy above which conversations begin at backups
export const ENGINE_SIZE = 56;

export const REPLICA_SEED = 0; // u64, id64 of the address: the replica's seed in rendezvous hashing
export const REPLICA_ADDRESS = 8; // text
export const REPLICA_FLAGS = 16; // u32
export const REPLICA_OVERFLOW = 24; // f64, share of its keys that go to another replica
export const REPLICA_SIZE = 32;
export const REPLICA_READY = 1; // flag

// --- Displaced keys that other Envoys of the frontend have reported: header, then hashes (u64). ---

/** `WDSP`. */
export const DISPLACED_MAGIC = 0x50534457;
/** Who raises it raises REPORT_FORMAT, too, so that filters from before are known by their calls. */
export const DISPLACED_FORMAT = 1;
export const DISPLACED_ROWS = 8; // u32
export const DISPLACED_CURSOR = 16; // u64, to be sent with the next call
export const DISPLACED_HEADER_SIZE = 24;
export const MAX_DISPLACED_ROWS = 512;

// --- Usage report: header, then a block for each VM: block header, then rows of pools, engines (per
// pool), latencies, replicas, loads, networks, turns. ---

/** `WUSE`. */
export const REPORT_MAGIC = 0x45535557;
export const REPORT_FORMAT = 3;

export const REPORT_VMS = 8; // u32, count of blocks
/** u32, hashes (u64) after the last block: keys that began at their second point, as this Envoy has decided. */
export const REPORT_DISPLACED = 12;
export const REPORT_HEADER_SIZE = 16;

export const VM_INCARNATION = 0; // u64
export const VM_SEQUENCE = 8; // u64, grows with every block that the VM writes
// Counts of rows.
export const VM_POOLS = 16; // u32
export const VM_ENGINES = 20; // u32
export const VM_LATENCIES = 24; // u32
export const VM_REPLICAS = 28; // u32
export const VM_LOADS = 32; // u32
export const VM_NETWORKS = 36; // u32
export const VM_TURNS = 40; // u32
export const VM_TURN_LEVEL = 44; // u32, below 64
export const VM_HEADER_SIZE = 48;

// Counters are u64 below 2^53, sums are f64 of 0 or more.
export const POOL_USAGE_POOL = 0; // u64, hash
export const POOL_USAGE_PRIORITY = 8; // i64
export const POOL_USAGE_OFFERED = 16;
export const POOL_USAGE_CLIENT_RETRIES = 24;
export const POOL_USAGE_SHED = 32;
export const POOL_USAGE_UNAVAILABLE = 40;
export const POOL_USAGE_WITHOUT_KEY = 48;
export const POOL_USAGE_BODIES_READ = 56;
export const POOL_USAGE_FOLLOW_UPS = 64;
export const POOL_USAGE_PROMPT_COUNT = 72;
export const POOL_USAGE_PROMPT_TOKENS = 80;
export const POOL_USAGE_CACHED_TOKENS = 88;
export const POOL_USAGE_CACHED_OF_TOKENS = 96;
export const POOL_USAGE_OUTPUT_COUNT = 104;
export const POOL_USAGE_OUTPUT_TOKENS = 112;
export const POOL_USAGE_SIZE = 120;

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
export const ENGINE_USAGE_STALLED = 88;
export const ENGINE_USAGE_BROKEN = 96;
export const ENGINE_USAGE_FIRST_TOKEN_SUM = 104; // f64, seconds
export const ENGINE_USAGE_FIRST_TOKEN_COUNT = 112;
export const ENGINE_USAGE_WHOLE_SUM = 120; // f64, seconds
export const ENGINE_USAGE_WHOLE_COUNT = 128;
export const ENGINE_USAGE_PACE_SUM = 136; // f64, seconds
export const ENGINE_USAGE_PACE_TOKENS = 144;
export const ENGINE_USAGE_USAGE_COUNT = 152;
export const ENGINE_USAGE_PROMPT_TOKENS = 160;
export const ENGINE_USAGE_CACHED_TOKENS = 168;
export const ENGINE_USAGE_CACHED_OF_TOKENS = 176;
export const ENGINE_USAGE_OUTPUT_TOKENS = 184;
export const ENGINE_USAGE_SIZE = 192;

/** Buckets of first-token times end at 0.05 s, 0.1 s, … 102.4 s; the last has no end. */
export const FIRST_TOKEN_BUCKETS = 13;
export const FIRST_TOKEN_LEAST_SECONDS = 0.05;
/** Buckets of token paces end at 0.0025 s, 0.005 s, … 0.64 s a token; the last has no end. */
export const PACE_BUCKETS = 10;
export const PACE_LEAST_SECONDS = 0.0025;

export const LATENCY_USAGE_ENGINE = 0; // u64, hash
export const LATENCY_USAGE_FIRST_TOKEN = 8; // counters
export const LATENCY_USAGE_PACE = 112; // counters
export const LATENCY_USAGE_SIZE = 192;

export const REPLICA_USAGE_ENGINE = 0; // u64, hash
export const REPLICA_USAGE_REPLICA = 8; // u64, hash of the address
export const REPLICA_USAGE_SENT = 16;
export const REPLICA_USAGE_ENDED = 24;
export const REPLICA_USAGE_SIZE = 32;

/** What load reports in responses may tell, in this order. */
export const LOAD_UTILIZATION = 0;
export const LOAD_KV_USE = 1;
export const LOAD_WAITING = 2;
export const LOAD_RUNNING = 3;
export const LOAD_REQUEST_RATE = 4;
export const LOAD_ERROR_RATE = 5;
export const LOADS = 6;

export const LOAD_USAGE_ENGINE = 0; // u64, hash
export const LOAD_USAGE_REPLICA = 8; // u64, hash of the address
export const LOAD_USAGE_REPORTS = 16;
export const LOAD_USAGE_GARBLED = 24;
export const LOAD_USAGE_SUMS = 32; // f64 by load
export const LOAD_USAGE_COUNTS = 80; // counters by load
export const LOAD_USAGE_SIZE = 128;
/**
 * Most rows of loads that a VM has in a report; of more, each report has the next. They start over, with fewer reports than
 * before, when they have counted some thousands.
 */
export const MOST_LOADS_TOLD = 1024;

export const NETWORK_USAGE_ENGINE = 0; // u64, hash
export const NETWORK_USAGE_COUNT = 8;
export const NETWORK_USAGE_SUM = 16; // f64, seconds
export const NETWORK_USAGE_SIZE = 24;

/** Conversations of which a VM counts the turns. */
export const WATCHED_CONVERSATIONS = 64;
/** A later turn begins a conversation anew: engines have forgotten it. */
export const TURN_SECONDS = 600;

export const TURN_USAGE_POOL = 0; // u64, hash
export const TURN_USAGE_KEY = 8; // u64, hash of pool and affinity key
export const TURN_USAGE_TURNS = 16;
export const TURN_USAGE_SIZE = 24;
