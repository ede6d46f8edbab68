import { WardropError } from '../xds-server/errors.js';
import { KEY_FIELDS, MAX_KEY_HEADERS } from './names.js';

/** The filter's own configuration. Everything that changes with a plan travels in snapshots instead. */
export interface FilterConfig {
  /** Id of the frontend whose snapshots this Envoy installs. */
  readonly frontendId: string;
  /** Sent to the sync server as `authorization: Bearer ...`; default none. */
  readonly syncToken?: string;
  /** Milliseconds between looks at shared state; 10..10000, default 100. */
  readonly syncPeriodMs?: number;
  /** Longest time that a request waits for the first snapshot, in milliseconds; 0..60000, default 2000. */
  readonly startupHoldMs?: number;
  /** Name of the header that carries the tenant, set by something trusted in front of Envoy; default none. */
  readonly tenantHeader?: string;
  /**
   * Whether model and key are looked for in JSON bodies when a header does not give them; default false. The plugin
   * needs `allow_on_headers_stop_iteration`, and Envoy 1.40 or later.
   */
  readonly readBodies?: boolean;
  /**
   * Longest body that is read, in bytes; 1024..1073741824, default 1048576. Envoy's own buffer limit must be larger.
   */
  readonly maxBodyBytes?: number;
  /** Headers that may carry the affinity key, the first that does counts; at most 16, default `KEY_HEADERS`. */
  readonly keyHeaders?: readonly string[];
  /** Fields of the body that may, after the headers; some of `KEY_FIELDS`, which is the default. */
  readonly keyFields?: readonly string[];
  /**
   * Takes this many first bytes of the body's messages for the key where nothing else carries one; 0..65536, default 0:
   * never.
   */
  readonly prefixKeyBytes?: number;
  /** Whether filter state tells access logs what became of each request; default false. */
  readonly logFields?: boolean;
  /** Whether conversations begin at the better of two points of the partition; default false. */
  readonly placement?: boolean;
  /** Envoy picks the host by weights and hash; the filter names the cluster and the hash only. Default false. */
  readonly nativeSteering?: boolean;
  /**
   * Retries that every route of this listener grants by itself, 0..10: the filter says how many a request has only where it
   * has another number. Default unknown: it always says.
   */
  readonly routeRetries?: number;
  /** A snapshot to begin with, checked as one from the control server, which replaces it; default none. */
  readonly snapshot?: Uint8Array;
  /**
   * Steer nothing, whatever snapshots say, and let requests go on at once while there is none; default false. For
   * listeners with routes of their own, to try the filter on.
   */
  readonly observe?: boolean;
}

/**
 * The plugin `configuration` (a `google.protobuf.StringValue`): one `name=value` a line, options left out where the
 * default serves. Throws WARDROP_CONFIG_INVALID.
 */
export function encodeFilterConfig(config: FilterConfig): string {
  const lines = [`frontendId=${text('frontendId', config.frontendId, /^[\x21-\x7e]{1,256}$/)}`];
  if (config.syncToken !== undefined) {
    lines.push(`syncToken=${text('syncToken', config.syncToken, /^[\x21-\x7e]{1,4096}$/)}`);
  }
  if (config.syncPeriodMs !== undefined) {
    lines.push(`syncPeriodMs=${integer('syncPeriodMs', config.syncPeriodMs, 10, 10_000)}`);
  }
  if (config.startupHoldMs !== undefined) {
    lines.push(`startupHoldMs=${integer('startupHoldMs', config.startupHoldMs, 0, 60_000)}`);
  }
  if (config.tenantHeader !== undefined) {
    lines.push(`tenantHeader=${text('tenantHeader', config.tenantHeader, /^[a-z0-9_-]{5,64}$/)}`);
  }
  if (config.readBodies !== undefined) lines.push(`readBodies=${config.readBodies}`);
  if (config.maxBodyBytes !== undefined) {
    lines.push(`maxBodyBytes=${integer('maxBodyBytes', config.maxBodyBytes, 1024, 2 ** 30)}`);
  }
  if (config.keyHeaders !== undefined) lines.push(`keyHeaders=${keyHeaders(config.keyHeaders)}`);
  if (config.keyFields !== undefined) lines.push(`keyFields=${keyFields(config.keyFields)}`);
  if (config.prefixKeyBytes !== undefined) {
    lines.push(`prefixKeyBytes=${integer('prefixKeyBytes', config.prefixKeyBytes, 0, 65_536)}`);
  }
  if (config.nativeSteering !== undefined) lines.push(`nativeSteering=${config.nativeSteering}`);
  if (config.routeRetries !== undefined) {
    lines.push(`routeRetries=${integer('routeRetries', config.routeRetries, 0, 10)}`);
  }
  if (config.snapshot !== undefined)
    lines.push(`snapshot=${Buffer.from(config.snapshot).toString('base64')}`);
  if (config.observe !== undefined) lines.push(`observe=${config.observe}`);
  if (config.logFields !== undefined) lines.push(`logFields=${config.logFields}`);
  if (config.placement !== undefined) lines.push(`placement=${config.placement}`);
  return `${lines.join('\n')}\n`;
}

function keyHeaders(names: readonly string[]): string {
  if (names.length > MAX_KEY_HEADERS)
    throw new WardropError('WARDROP_CONFIG_INVALID', `filter keyHeaders: at most ${MAX_KEY_HEADERS}`);
  return names.map((name) => text('keyHeaders', name, /^[a-z0-9_-]{5,64}$/)).join();
}

function keyFields(names: readonly string[]): string {
  const unknown = names.find((name) => !KEY_FIELDS.includes(name));
  if (unknown !== undefined)
    throw new WardropError('WARDROP_CONFIG_INVALID', `filter keyFields: unknown field ${unknown}`);
  return names.join();
}

function text(name: string, value: string, pattern: RegExp): string {
  if (!pattern.test(value)) {
    throw new WardropError('WARDROP_CONFIG_INVALID', `filter ${name}: must match ${pattern}`);
  }
  return value;
}

function integer(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new WardropError(
      'WARDROP_CONFIG_INVALID',
      `filter ${name}: must be a whole number from ${min} to ${max}, not ${value}`,
    );
  }
  return value;
}
