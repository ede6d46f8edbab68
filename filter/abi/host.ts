// Host calls in use, under the names of their meaning. Only what is called ends up as an import of the module.
export {
  proxy_add_header_map_value as addHeader,
  proxy_continue_stream as continueStream,
  proxy_define_metric as defineMetric,
  proxy_get_buffer_bytes as getBuffer,
  proxy_get_current_time_nanoseconds as getTime,
  proxy_get_header_map_pairs as getHeaders,
  proxy_get_header_map_value as getHeader,
  proxy_get_property as getProperty,
  proxy_get_shared_data as getShared,
  proxy_http_call as httpCall,
  proxy_increment_metric as incrementMetric,
  proxy_log as logMessage,
  proxy_record_metric as recordMetric,
  proxy_remove_header_map_value as removeHeader,
  proxy_replace_header_map_value as replaceHeader,
  proxy_send_local_response as sendLocalResponse,
  proxy_set_effective_context as setEffectiveContext,
  proxy_set_property as setProperty,
  proxy_set_shared_data as setShared,
  proxy_set_tick_period_milliseconds as setTickPeriod,
} from '@gcoredev/proxy-wasm-sdk-as/assembly/imports';

// @ts-ignore: decorator
@external('wasi_snapshot_preview1', 'random_get')
declare function random_get(at: usize, size: usize): i32;

/** Result of a host call that worked. */
export const OK: u32 = 0;

// Header maps.
export const REQUEST_HEADERS: i32 = 0;
export const RESPONSE_HEADERS: i32 = 2;
export const RESPONSE_TRAILERS: i32 = 3;
export const CALL_RESPONSE_HEADERS: i32 = 6;

// Buffers.
export const REQUEST_BODY: i32 = 0;
export const RESPONSE_BODY: i32 = 1;
export const CALL_RESPONSE_BODY: i32 = 4;
export const PLUGIN_CONFIGURATION: i32 = 7;

export const REQUEST_STREAM: i32 = 0;

// What a callback for headers answers.
export const CONTINUE: i32 = 0;
/** Ends the request here: an answer of our own follows. */
export const STOP: i32 = 1;
/** Keeps the whole request waiting, its body not even read beyond the buffer limit. */
export const HOLD: i32 = 4;

// Metrics.
export const COUNTER: i32 = 0;
export const GAUGE: i32 = 1;
export const HISTOGRAM: i32 = 2;

// Log levels.
export const WARN: usize = 3;
export const ERROR: usize = 4;

export function randomBytes(at: usize, size: usize): void {
  random_get(at, size);
}
