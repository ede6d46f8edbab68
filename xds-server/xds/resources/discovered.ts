import type { MessageInitShape } from '@bufbuild/protobuf';
import { ApiVersion, type ConfigSourceSchema } from '../../gen/envoy/config/core/v3/config_source_pb.js';
import { WasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js';
import { duration } from './pack.js';

type Source = MessageInitShape<typeof ConfigSourceSchema>;

/** By the same stream as what refers to it, which waits for it so long, with 0 as long as it takes. */
export function fromAds(waitMs: number): Source {
  return {
    resourceApiVersion: ApiVersion.V3,
    configSourceSpecifier: { case: 'ads', value: {} },
    initialFetchTimeout: duration(waitMs),
  };
}

/**
 * A filter by its name, and not itself: with another filter the listener would be another, and Envoy would close all
 * its connections, streams under way among them, within the time that it takes for draining. By itself it is replaced for
 * the next request.
 */
export function discoveredFilter(name: string, configSource: Source) {
  return {
    name,
    configType: {
      case: 'configDiscovery' as const,
      value: { configSource, typeUrls: [`type.googleapis.com/${WasmSchema.typeName}`] },
    },
  };
}
