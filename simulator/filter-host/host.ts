import { randomFillSync } from 'node:crypto';
import { encodeFilterConfig, type FilterConfig } from '../../wire/filter-config.js';
import { SYNC_CLUSTER } from '../../wire/names.js';
import { filterModule } from './build.js';
import { decodePairs, encodePairs, type Headers } from './pairs.js';
import { Stream, type StreamVm } from './stream.js';

export type { Headers } from './pairs.js';
export type { LocalReply, Stream } from './stream.js';

export interface HostCall {
  readonly token: number;
  readonly cluster: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

const OK = 0;
const NOT_FOUND = 1;
const BAD_ARGUMENT = 2;
const CAS_MISMATCH = 8;

const utf8 = new TextEncoder();
const text = new TextDecoder();

type FillRandom = (bytes: Uint8Array) => void;

let fillRandomly: FillRandom = (bytes) => void randomFillSync(bytes);

/** What Envoys draw from that are given nothing of their own. */
export function drawFrom(fillRandom: FillRandom): void {
  fillRandomly = fillRandom;
}

/** One Envoy process under emulation: VMs of the filter, what they share, and a clock that tests move. */
export class Host {
  nowMs = 1_700_000_000_000;
  nodeId = 'envoy-1';
  readonly shared = new Map<string, { value: Uint8Array; cas: number }>();
  readonly metrics = new Map<string, number>();
  readonly logs: string[] = [];
  /** Host calls by name, since the test last cleared it. */
  readonly calls = new Map<string, number>();
  readonly fillRandom: FillRandom;
  /** Imports of a module that was changed. */
  readonly furtherImports: WebAssembly.ModuleImports;
  readonly #module: WebAssembly.Module;
  #cas = 0;

  constructor(
    module: WebAssembly.Module = filterModule(),
    fillRandom: FillRandom = (bytes) => fillRandomly(bytes),
    furtherImports: WebAssembly.ModuleImports = {},
  ) {
    this.#module = module;
    this.fillRandom = fillRandom;
    this.furtherImports = furtherImports;
  }

  /** A VM with a configured root context; throws when the configuration is refused. */
  startVm(config: FilterConfig | string = { frontendId: 'west' }): Vm {
    const routeRetries = typeof config === 'string' ? undefined : config.routeRetries;
    const vm = new Vm(this, this.#module, routeRetries);
    const configured = vm.configure(typeof config === 'string' ? config : encodeFilterConfig(config));
    if (!configured) throw new Error(`configuration refused: ${this.logs.at(-1)}`);
    return vm;
  }

  nextCas(): number {
    return ++this.#cas;
  }
}

type HostCalls = Record<string, (...args: never[]) => number>;
type Exports = Record<string, (...args: number[]) => number> & { readonly memory: WebAssembly.Memory };

/** One VM with its root context. */
export class Vm implements StreamVm {
  readonly host: Host;
  /** The call to the control server in flight, if any. */
  call: HostCall | undefined;
  /** Other calls in flight, the oldest first: engines are asked to see how far away they are. */
  readonly questions: HostCall[] = [];
  tickPeriodMs = 0;
  /** What routes grant where the filter says nothing. */
  readonly routeRetries: number | undefined;
  readonly #exports: Exports;
  readonly #streams = new Map<number, Stream>();
  readonly #metricNames: string[] = [];
  #root = 1;
  #nextContext = 2;
  #calls = 0;
  #effective = 0;
  #configuration = new Uint8Array();
  #answer: { headers: Headers; body: Uint8Array } = { headers: [], body: new Uint8Array() };

  constructor(host: Host, module: WebAssembly.Module, routeRetries?: number) {
    this.host = host;
    this.routeRetries = routeRetries;
    const env = { ...this.#hostCalls(), ...host.furtherImports };
    const imports = { env, wasi_snapshot_preview1: this.#wasi() };
    this.#exports = new WebAssembly.Instance(module, imports).exports as unknown as Exports;
    this.#exports.malloc!(0);
    this.#exports._initialize!();
  }

  get memoryBytes(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  configure(configuration: string): boolean {
    this.#configuration = utf8.encode(configuration);
    return this.#enter(this.#root, 'proxy_on_configure', this.#configuration.length) !== 0;
  }

  /** A new root context in the same VM, as after a change of the configuration. */
  reconfigure(configuration: FilterConfig): boolean {
    this.#root = this.#nextContext++;
    return this.configure(encodeFilterConfig(configuration));
  }

  tick(): void {
    this.#enter(this.#root, 'proxy_on_tick');
  }

  /** Answers the call in flight; without a status it fails. */
  answer(status?: number, body: Uint8Array = new Uint8Array()): void {
    if (!this.call) throw new Error('there is no call to answer');
    const { token } = this.call;
    this.call = undefined;
    this.#end(token, status, body);
  }

  /** Answers the oldest question in flight; without a status it fails. */
  answerQuestion(status?: number): void {
    const question = this.questions.shift();
    if (!question) throw new Error('there is no question to answer');
    const { token } = question;
    this.#end(token, status, new Uint8Array());
  }

  #end(token: number, status: number | undefined, body: Uint8Array): void {
    this.#answer = { headers: status === undefined ? [] : [[':status', `${status}`]], body };
    const headers = this.#answer.headers.length;
    this.#enter(this.#root, 'proxy_on_http_call_response', token, headers, body.length, 0);
  }

  /** A request whose headers arrive now. */
  request(
    headers: Record<string, string> | Headers = {},
    options: { ended?: boolean; routeCluster?: string } = {},
  ): Stream {
    const given = Array.isArray(headers) ? headers : Object.entries(headers);
    const defaults: Headers = [
      [':method', 'POST'],
      [':path', '/v1/chat/completions'],
      [':authority', 'proxy'],
    ];
    const all = [...defaults.filter(([name]) => !given.some(([other]) => other === name)), ...given];
    const stream = new Stream(
      this,
      this.#nextContext++,
      all.map(([name, value]) => [name, value]),
    );
    if (options.routeCluster) stream.properties.set('xds\0cluster_name', utf8.encode(options.routeCluster));
    this.#streams.set(stream.context, stream);
    stream.action = this.enter(stream, 'proxy_on_request_headers', all.length, options.ended ? 1 : 0);
    return stream;
  }

  enter(stream: Stream, callback: string, ...args: number[]): number {
    return this.#enter(stream.context, callback, ...args);
  }

  forget(stream: Stream): void {
    this.#streams.delete(stream.context);
  }

  #enter(context: number, callback: string, ...args: number[]): number {
    this.#effective = context;
    return this.#exports[callback]!(context, ...args);
  }

  #bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.#exports.memory.buffer, at, length);
  }

  #string(at: number, length: number): string {
    return text.decode(this.#bytes(at, length));
  }

  /** Hands bytes to the module the way the host does. */
  #give(bytes: Uint8Array, pointerAt: number, lengthAt: number): number {
    const at = this.#exports.malloc!(bytes.length);
    this.#bytes(at, bytes.length).set(bytes);
    const data = new DataView(this.#exports.memory.buffer);
    data.setUint32(pointerAt, at, true);
    data.setUint32(lengthAt, bytes.length, true);
    return OK;
  }

  #headers(type: number): Headers {
    if (type === 6) return this.#answer.headers;
    const stream = this.#streams.get(this.#effective);
    if (!stream) throw new Error(`headers of context ${this.#effective}, which is no stream`);
    if (type === 3) return stream.responseTrailers;
    return type === 0 ? stream.requestHeaders : stream.responseHeaders;
  }

  #buffer(type: number): Uint8Array | undefined {
    if (type === 7) return this.#configuration;
    if (type === 4) return this.#answer.body;
    const stream = this.#streams.get(this.#effective);
    return type === 1 ? stream?.responsePiece : stream?.buffered;
  }

  /** All of them, each counted. */
  #hostCalls(): WebAssembly.ModuleImports {
    const calls: HostCalls = {
      ...this.#rootCalls(),
      ...this.#streamCalls(),
      ...this.#headerCalls(),
      ...this.#sharedDataCalls(),
      ...this.#metricCalls(),
    };
    return Object.fromEntries(
      Object.entries(calls).map(([name, call]) => [
        name,
        (...args: never[]) => {
          this.host.calls.set(name, (this.host.calls.get(name) ?? 0) + 1);
          return call(...args);
        },
      ]),
    );
  }

  /** What there is without a request, too. */
  #rootCalls(): HostCalls {
    const { host } = this;
    return {
      proxy_log: (_level: number, at: number, length: number) => {
        host.logs.push(this.#string(at, length));
        return OK;
      },
      proxy_get_current_time_nanoseconds: (at: number) => {
        const nowNs = BigInt(Math.round(host.nowMs * 1000)) * 1000n;
        new DataView(this.#exports.memory.buffer).setBigUint64(at, nowNs, true);
        return OK;
      },
      proxy_set_tick_period_milliseconds: (ms: number) => {
        this.tickPeriodMs = ms;
        return OK;
      },
      proxy_set_effective_context: (context: number) => {
        if (context !== this.#root && !this.#streams.has(context)) return BAD_ARGUMENT;
        this.#effective = context;
        return OK;
      },
      proxy_http_call: (
        clusterAt: number,
        clusterLength: number,
        headersAt: number,
        headersLength: number,
        bodyAt: number,
        bodyLength: number,
        _trailersAt: number,
        _trailersLength: number,
        _timeoutMs: number,
        tokenAt: number,
      ) => {
        if (this.#effective !== this.#root) return BAD_ARGUMENT;
        const call = {
          token: ++this.#calls,
          cluster: this.#string(clusterAt, clusterLength),
          headers: decodePairs(this.#bytes(headersAt, headersLength)),
          body: this.#bytes(bodyAt, bodyLength).slice(),
        };
        if (call.cluster === SYNC_CLUSTER) this.call = call;
        else this.questions.push(call);
        new DataView(this.#exports.memory.buffer).setUint32(tokenAt, call.token, true);
        return OK;
      },
    };
  }

  #streamCalls(): HostCalls {
    const { host } = this;
    return {
      proxy_continue_stream: (type: number) => {
        if (type !== 0) return BAD_ARGUMENT;
        this.#streams.get(this.#effective)!.resumed = true;
        return OK;
      },
      proxy_send_local_response: (
        status: number,
        detailsAt: number,
        detailsLength: number,
        bodyAt: number,
        bodyLength: number,
        headersAt: number,
        headersLength: number,
      ) => {
        this.#streams.get(this.#effective)!.reply = {
          status,
          details: this.#string(detailsAt, detailsLength),
          headers: decodePairs(this.#bytes(headersAt, headersLength)),
          body: this.#string(bodyAt, bodyLength),
        };
        return OK;
      },
      proxy_get_property: (at: number, length: number, pointerAt: number, lengthAt: number) => {
        const path = this.#string(at, length);
        if (path === 'xds\0node\0id') return this.#give(utf8.encode(host.nodeId), pointerAt, lengthAt);
        const value = this.#streams.get(this.#effective)?.properties.get(path);
        return value ? this.#give(value, pointerAt, lengthAt) : NOT_FOUND;
      },
      proxy_set_property: (at: number, length: number, valueAt: number, valueLength: number) => {
        const stream = this.#streams.get(this.#effective)!;
        stream.filterState.set(this.#string(at, length), this.#string(valueAt, valueLength));
        return OK;
      },
      proxy_get_buffer_bytes: (
        type: number,
        start: number,
        length: number,
        pointerAt: number,
        lengthAt: number,
      ) => {
        const buffer = this.#buffer(type);
        if (!buffer || start > buffer.length) return BAD_ARGUMENT;
        return this.#give(buffer.subarray(start, start + length), pointerAt, lengthAt);
      },
    };
  }

  #headerCalls(): HostCalls {
    return {
      proxy_get_header_map_pairs: (type: number, pointerAt: number, lengthAt: number) =>
        this.#give(encodePairs(this.#headers(type)), pointerAt, lengthAt),
      proxy_get_header_map_value: (
        type: number,
        at: number,
        length: number,
        pointerAt: number,
        lengthAt: number,
      ) => {
        const name = this.#string(at, length);
        const found = this.#headers(type).find(([other]) => other === name);
        return found ? this.#give(utf8.encode(found[1]), pointerAt, lengthAt) : NOT_FOUND;
      },
      proxy_add_header_map_value: (
        type: number,
        at: number,
        length: number,
        valueAt: number,
        valueLength: number,
      ) => {
        this.#headers(type).push([this.#string(at, length), this.#string(valueAt, valueLength)]);
        return OK;
      },
      proxy_replace_header_map_value: (
        type: number,
        at: number,
        length: number,
        valueAt: number,
        valueLength: number,
      ) => {
        const name = this.#string(at, length);
        const headers = this.#headers(type);
        const others = headers.filter(([other]) => other !== name);
        headers.splice(0, headers.length, ...others, [name, this.#string(valueAt, valueLength)]);
        return OK;
      },
      proxy_remove_header_map_value: (type: number, at: number, length: number) => {
        const name = this.#string(at, length);
        const headers = this.#headers(type);
        headers.splice(0, headers.length, ...headers.filter(([other]) => other !== name));
        return OK;
      },
    };
  }

  #sharedDataCalls(): HostCalls {
    const { host } = this;
    return {
      proxy_get_shared_data: (
        at: number,
        length: number,
        pointerAt: number,
        lengthAt: number,
        casAt: number,
      ) => {
        const entry = host.shared.get(this.#string(at, length));
        if (!entry) return NOT_FOUND;
        new DataView(this.#exports.memory.buffer).setUint32(casAt, entry.cas, true);
        return this.#give(entry.value, pointerAt, lengthAt);
      },
      proxy_set_shared_data: (
        at: number,
        length: number,
        valueAt: number,
        valueLength: number,
        cas: number,
      ) => {
        const key = this.#string(at, length);
        const entry = host.shared.get(key);
        if (entry && cas !== 0 && cas !== entry.cas) return CAS_MISMATCH;
        host.shared.set(key, { value: this.#bytes(valueAt, valueLength).slice(), cas: host.nextCas() });
        return OK;
      },
    };
  }

  #metricCalls(): HostCalls {
    const { host } = this;
    return {
      proxy_define_metric: (_type: number, at: number, length: number, idAt: number) => {
        const name = this.#string(at, length);
        if (!host.metrics.has(name)) host.metrics.set(name, 0);
        const id = this.#metricNames.push(name);
        new DataView(this.#exports.memory.buffer).setUint32(idAt, id, true);
        return OK;
      },
      proxy_increment_metric: (id: number, by: bigint) => {
        const name = this.#metricNames[id - 1]!;
        host.metrics.set(name, host.metrics.get(name)! + Number(by));
        return OK;
      },
      proxy_record_metric: (id: number, value: bigint) => {
        host.metrics.set(this.#metricNames[id - 1]!, Number(value));
        return OK;
      },
    };
  }

  #wasi(): WebAssembly.ModuleImports {
    return {
      random_get: (at: number, length: number) => {
        this.host.fillRandom(this.#bytes(at, length));
        return 0;
      },
    };
  }
}
