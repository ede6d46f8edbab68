import type { NodeIdentity } from '../protocol/node.js';
import type { Steering } from './steering.js';

/** What resources must take care of for one Envoy. */
export interface EnvoyFeatures {
  readonly steering: Steering;
  /** Retry budgets can count the requests of an interval instead of the active ones. */
  readonly retryBudgetInterval: boolean;
  /** Bodies stay whole while a filter holds the headers back. */
  readonly wholeBodies: boolean;
}

/** The oldest release that is tested. */
const OLDEST_MINOR = 36;

/** What this node gets of the wanted steering. Clients that are no Envoy get what they ask for. */
export function featuresOf(node: NodeIdentity, wanted: Steering): EnvoyFeatures {
  const version = envoyVersion(node);
  if (version === undefined) return { steering: wanted, retryBudgetInterval: true, wholeBodies: true };
  const noOverride = wanted === 'override-host' && lacks(node, OVERRIDE_HOST);
  const brokenRing = wanted === 'ring-hash' && hasBrokenRing(node);
  return {
    steering: noOverride || brokenRing ? 'maglev' : wanted,
    retryBudgetInterval: version.minor >= 39,
    wholeBodies: version.minor >= 40,
  };
}

/** In words, what this Envoy lacks for what is wanted of it and what follows; empty for a current one. */
export function shortcomingsOf(node: NodeIdentity, wanted: Steering, readsBodies = false): string[] {
  const version = envoyVersion(node);
  if (version === undefined) return [];
  const found: string[] = [];
  if (version.minor < OLDEST_MINOR) {
    found.push(`Envoy ${node.userAgentVersion} is older than 1.${OLDEST_MINOR}, the oldest that is tested`);
  }
  if (readsBodies && version.minor < 40) {
    found.push(
      'before 1.40, a body may lose parts while a filter waits for it, so that its filter reads none: headers must name the model, and needs told by bodies keep it from serving',
    );
  }
  if (lacks(node, WASM)) found.push('without WebAssembly (V8), it will reject the listener');
  if (wanted === 'override-host' && lacks(node, OVERRIDE_HOST)) {
    found.push(
      'without the load-balancing policy override_host, requests go by weights and key, not where the filter says',
    );
  }
  if (wanted === 'ring-hash' && hasBrokenRing(node)) {
    found.push(
      'its ring hash loses endpoints that come late (envoyproxy/envoy#45344), so that it is given maglev',
    );
  }
  if (wanted !== 'override-host' && version.minor < 39) {
    found.push('its retry budget counts active requests, which is too generous for long streams');
  }
  return found;
}

const OVERRIDE_HOST = 'envoy.load_balancing_policies.override_host';
const WASM = 'envoy.wasm.runtime.v8';

/** Envoy lists its extensions; a list without this one means that it was built without. */
function lacks(node: NodeIdentity, extension: string): boolean {
  const { extensions } = node;
  return extensions !== undefined && extensions.size > 0 && !extensions.has(extension);
}

function hasBrokenRing(node: NodeIdentity): boolean {
  return node.userAgentVersion === '1.38.0';
}

function envoyVersion(node: NodeIdentity): { readonly minor: number } | undefined {
  const parts = /^1\.(\d+)\./.exec(node.userAgentVersion);
  return node.userAgent === 'envoy' && parts !== null ? { minor: Number(parts[1]) } : undefined;
}
