// A filter in C that does nothing: the callbacks of Wardrop's filter, and no host call. What it costs is Envoy's price of
// any wasm filter. With a configuration, whatever it says, it waits for the whole body first, as a filter that reads it must.
#define EXP(n) __attribute__((export_name(n)))
static int waits;
EXP("malloc") void *alloc(int size) { static char arena[65536]; return arena; }
EXP("_initialize") void init(void) {}
EXP("proxy_abi_version_0_2_1") void abi(void) {}
EXP("proxy_on_configure") int configure(int root, int size) { waits = size > 0; return 1; }
EXP("proxy_on_request_headers") int headers(int context, int count, int ended) { return waits && !ended; }
EXP("proxy_on_request_body") int body(int context, int size, int ended) { return waits && !ended; }
EXP("proxy_on_request_trailers") int trailers(int context, int count) { return 0; }
EXP("proxy_on_response_headers") int response(int context, int count, int ended) { return 0; }
EXP("proxy_on_response_body") int response_body(int context, int size, int ended) { return 0; }
EXP("proxy_on_response_trailers") int response_trailers(int context, int count) { return 0; }
EXP("proxy_on_log") void log_end(int context) {}
