import { createHash } from 'node:crypto';
import { StringValueSchema } from '@bufbuild/protobuf/wkt';
import { encodeFilterConfig, type FilterConfig } from '../../../wire/filter-config.js';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.js';
import { WasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js';
import { FailurePolicy } from '../../gen/envoy/extensions/wasm/v3/wasm_pb.js';
import { following, type Resource } from '../protocol/resource.js';
import type { EnvoyFeatures } from './envoy-features.js';
import { duration, extension, pack, resource } from './pack.js';

/** Of the listener that is ours. */
export const FILTER_NAME = 'wardrop-listener';
/** For listeners of others. */
export const COMMON_FILTER_NAME = 'wardrop';

/** Of what a filter follows: the same, where it serves nothing. */
export const nextNameOf = (name: string) => `${name}-next`;

/** Its requests are refused while a VM that has trapped is down; a new one takes some milliseconds, so there is little to wait for. */
const RELOAD_BACKOFF_MS = 100;

/** Also the scope of the filter's shared data, whatever configurations its VMs have. */
const VM_ID = 'wardrop';

export interface FilterInput {
  /** The compiled filter. */
  readonly wasmModule: Uint8Array;
  readonly filter: FilterConfig;
}

export interface FilterOptions {
  /** The filter's own configuration, but for what depends on the Envoy. */
  readonly filter: FilterConfig;
  /** What Envoy must be able to hold of a body until the filter has read it; Envoy's default when absent. */
  readonly bufferBytes?: number;
}

/** What the filter is told in an Envoy with these features. */
export function filterConfigFor(
  filter: FilterConfig,
  { steering, wholeBodies }: EnvoyFeatures,
): FilterConfig {
  const { readBodies, maxBodyBytes, ...rest } = filter;
  return {
    ...rest,
    // Before 1.40, an Envoy may lose parts of a body while a filter waits for it.
    ...(wholeBodies && readBodies !== undefined && { readBodies }),
    ...(wholeBodies && maxBodyBytes !== undefined && { maxBodyBytes }),
    ...(steering !== 'override-host' && { nativeSteering: true }),
  };
}

/**
 * The filter by itself: listeners find it by extension discovery. It follows one that is the same and has the same VMs: where a
 * listener that serves nothing has that, another filter has its snapshot by the time it decides on requests.
 */
export function filtersOf(name: string, input: FilterInput): Resource[] {
  const config = wasmConfig(input);
  const of = (name: string) =>
    resource(name, TypedExtensionConfigSchema, extension(name, WasmSchema, config));
  const next = nextNameOf(name);
  return [of(next), following(of(name), next)];
}

/**
 * A configuration has VMs of its own, told apart by what the VM itself is configured with. In one VM, Envoy does not
 * configure again what it takes back while something still uses it: what came between would stay in force.
 */
function wasmConfig({ wasmModule, filter }: FilterInput) {
  const configuration = encodeFilterConfig(filter);
  return {
    config: {
      name: 'wardrop',
      rootId: 'wardrop',
      configuration: pack(StringValueSchema, { value: configuration }),
      failurePolicy: FailurePolicy.FAIL_RELOAD,
      reloadConfig: { backoff: { baseInterval: duration(RELOAD_BACKOFF_MS) } },
      // Lets the filter hold the headers and still see the body.
      allowOnHeadersStopIteration: true,
      vm: {
        case: 'vmConfig' as const,
        value: {
          vmId: VM_ID,
          configuration: pack(StringValueSchema, {
            value: createHash('sha256').update(configuration).digest('hex'),
          }),
          runtime: 'envoy.wasm.runtime.v8',
          code: {
            specifier: {
              case: 'local' as const,
              value: { specifier: { case: 'inlineBytes' as const, value: wasmModule } },
            },
          },
        },
      },
    },
  };
}
