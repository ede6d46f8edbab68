import { setFlagsFromString } from 'node:v8';
import { encodePairs, type Headers } from '../../simulator/filter-host/pairs.js';

// Envoy's V8 does so unasked.
setFlagsFromString('--experimental-wasm-branch-hinting');

const OK = 0;
const NOT_FOUND = 1;

// Maps and buffers of the ABI.
const RESPONSE_HEADERS = 2;
const CALL_RESPONSE_HEADERS = 6;
const RESPONSE_BODY = 1;
const CALL_RESPONSE_BODY = 4;
const PLUGIN_CONFIGURATION = 7;

export interface Exchange {
  /** One after the other, so that keys differ. */
  readonly requestHeaders: readonly Headers[];
  readonly body: Uint8Array;
  readonly responseHeaders: Headers;
  /** Pieces in which the answer's body comes. */
  readonly answer: readonly Uint8Array[];
}

type Callback = (...args: number[]) => number;

/**
 * The least that can stand in for Envoy: whatever the module, host calls cost next to nothing, so that what is timed is the
 * module and the crossing. Header maps are encoded beforehand and never change.
 */
export class ModuleHost {
  /** Host calls by name, while `counting`. */
  readonly calls = new Map<string, number>();
  readonly #exports: Record<string, Callback> & { readonly memory: WebAssembly.Memory };
  readonly #malloc: Callback;
  readonly #shared = new Map<string, { value: Uint8Array; cas: number }>();
  #memory = new Uint8Array();
  #data = new DataView(new ArrayBuffer(0));
  #nowNs = 1_700_000_000_000_000_000n;
  #cas = 0;
  #context = 1;
  #call = 0;
  #configuration: Uint8Array = new Uint8Array();
  #answer: Uint8Array = new Uint8Array();
  #requestHeaders: Uint8Array = new Uint8Array();
  #responseHeaders: Uint8Array = new Uint8Array();
  #answerHeaders: Uint8Array = new Uint8Array();
  #body: Uint8Array = new Uint8Array();
  #responseBody: Uint8Array = new Uint8Array();

  constructor(module: WebAssembly.Module, counting = false) {
    const env = this.#hostCalls();
    const wasi = { random_get: (at: number, length: number) => this.#bytes().fill(7, at, at + length) && 0 };
    const imports = { env: counting ? this.#counted(env) : env, wasi_snapshot_preview1: wasi };
    this.#exports = new WebAssembly.Instance(module, imports as never).exports as never;
    this.#malloc = this.#exports.malloc!;
    this.#exports._initialize!();
  }

  get memoryBytes(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  configure(configuration: string): void {
    this.#configuration = new TextEncoder().encode(configuration);
    if (!this.#exports.proxy_on_configure!(1, this.#configuration.length)) throw new Error('refused to load');
  }

  /** Answers the latest call with this snapshot; returns the milliseconds that the module took. */
  answer(snapshot: Uint8Array): number {
    this.#answer = snapshot;
    this.#answerHeaders = encodePairs([[':status', '200']]);
    const started = performance.now();
    this.#exports.proxy_on_http_call_response!(1, this.#call, 1, snapshot.length, 0);
    return performance.now() - started;
  }

  tick(): void {
    this.#nowNs += 100_000_000n;
    this.#exports.proxy_on_tick?.(1);
  }

  /** Prepares `serve`: requests of this kind, one after the other. */
  server({ requestHeaders, body, responseHeaders, answer }: Exchange): (requests: number) => void {
    const exports = this.#exports;
    const requests = requestHeaders.map((headers) => encodePairs(headers));
    const count = requestHeaders[0]!.length;
    this.#responseHeaders = encodePairs(responseHeaders);
    this.#body = body;
    const onRequest = exports.proxy_on_request_headers!;
    const onBody = exports.proxy_on_request_body!;
    const onResponse = exports.proxy_on_response_headers!;
    const onResponseBody = exports.proxy_on_response_body!;
    const onLog = exports.proxy_on_log!;
    return (times) => {
      for (let i = 0; i < times; i++) {
        const context = ++this.#context;
        this.#nowNs += 100_000n;
        this.#requestHeaders = requests[context % requests.length]!;
        onRequest(context, count, 0);
        onBody(context, body.length, 1);
        onResponse(context, responseHeaders.length, 0);
        for (const piece of answer) {
          this.#responseBody = piece;
          onResponseBody(context, piece.length, 0);
        }
        onResponseBody(context, 0, 1);
        onLog(context);
      }
    };
  }

  /** The module's memory; views of it end when it grows. */
  #bytes(): Uint8Array {
    if (this.#memory.byteLength === 0) {
      this.#memory = new Uint8Array(this.#exports.memory.buffer);
      this.#data = new DataView(this.#exports.memory.buffer);
    }
    return this.#memory;
  }

  #give(bytes: Uint8Array, pointerAt: number, lengthAt: number): number {
    const at = this.#malloc(bytes.length);
    this.#bytes().set(bytes, at);
    this.#data.setUint32(pointerAt, at, true);
    this.#data.setUint32(lengthAt, bytes.length, true);
    return OK;
  }

  #text(at: number, length: number): string {
    return Buffer.from(this.#bytes().subarray(at, at + length)).toString('latin1');
  }

  #hostCalls(): Record<string, (...args: number[]) => number> {
    const done = () => OK;
    return {
      proxy_log: done,
      proxy_set_tick_period_milliseconds: done,
      proxy_set_effective_context: done,
      proxy_continue_stream: done,
      proxy_increment_metric: done,
      proxy_record_metric: done,
      proxy_http_call: (...args) => {
        this.#bytes();
        this.#data.setUint32(args[9]!, ++this.#call, true);
        return OK;
      },
      proxy_set_property: done,
      proxy_replace_header_map_value: done,
      proxy_add_header_map_value: done,
      proxy_remove_header_map_value: done,
      proxy_send_local_response: () => {
        throw new Error('the module refused the request');
      },
      proxy_define_metric: (_type, _at, _length, idAt) => {
        this.#bytes();
        this.#data.setUint32(idAt!, 1, true);
        return OK;
      },
      proxy_get_current_time_nanoseconds: (at) => {
        this.#bytes();
        this.#data.setBigUint64(at!, this.#nowNs, true);
        return OK;
      },
      proxy_get_header_map_pairs: (type, pointerAt, lengthAt) =>
        this.#give(this.#headers(type!), pointerAt!, lengthAt!),
      proxy_get_header_map_value: (_type, at, length, pointerAt, lengthAt) =>
        this.#text(at!, length!) === ':status'
          ? this.#give(Buffer.from('200'), pointerAt!, lengthAt!)
          : NOT_FOUND,
      proxy_get_property: () => NOT_FOUND,
      proxy_get_buffer_bytes: (type, start, length, pointerAt, lengthAt) => {
        const buffer = this.#buffer(type!);
        return this.#give(buffer.subarray(start!, start! + length!), pointerAt!, lengthAt!);
      },
      proxy_get_shared_data: (at, length, pointerAt, lengthAt, casAt) => {
        const entry = this.#shared.get(this.#text(at!, length!));
        if (!entry) return NOT_FOUND;
        this.#bytes();
        this.#data.setUint32(casAt!, entry.cas, true);
        return this.#give(entry.value, pointerAt!, lengthAt!);
      },
      proxy_set_shared_data: (at, length, valueAt, valueLength) => {
        const value = this.#bytes().slice(valueAt!, valueAt! + valueLength!);
        this.#shared.set(this.#text(at!, length!), { value, cas: ++this.#cas });
        return OK;
      },
    };
  }

  #headers(type: number): Uint8Array {
    if (type === CALL_RESPONSE_HEADERS) return this.#answerHeaders;
    return type === RESPONSE_HEADERS ? this.#responseHeaders : this.#requestHeaders;
  }

  #buffer(type: number): Uint8Array {
    if (type === PLUGIN_CONFIGURATION) return this.#configuration;
    if (type === RESPONSE_BODY) return this.#responseBody;
    return type === CALL_RESPONSE_BODY ? this.#answer : this.#body;
  }

  #counted(env: Record<string, (...args: number[]) => number>): typeof env {
    return Object.fromEntries(
      Object.entries(env).map(([name, call]) => [
        name,
        (...args: number[]) => {
          this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
          return call(...args);
        },
      ]),
    );
  }
}
