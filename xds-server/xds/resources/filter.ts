import { StringValueSchema } from '@bufbuild/protobuf/wkt';
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.js';
import { WasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js';
import { FailurePolicy } from '../../gen/envoy/extensions/wasm/v3/wasm_pb.js';
import type { Resource } from '../protocol/resource.js';
import { extension, pack, resource } from './pack.js';

/** Name of the filter, in our listener and as a resource for listeners of others. */
export const FILTER_NAME = 'wardrop';

/** Also the scope of the filter's shared data; changing it would start all VMs anew. */
const VM_ID = 'wardrop';

export interface FilterInput {
  /** The compiled filter. */
  readonly wasmModule: Uint8Array;
  /** The filter's own configuration, as its codec writes it. */
  readonly filterConfig: string;
}

export interface FilterOptions {
  readonly filterConfig: string;
  /**
   * In place of `filterConfig`, where that reads bodies, for Envoys before 1.40: these may lose parts of a body while
   * a filter waits for it.
   */
  readonly withoutBodies?: string;
  /** What Envoy must be able to hold of a body until the filter has read it; Envoy's default when absent. */
  readonly bufferBytes?: number;
}

/** The filter by itself, for a listener that is not ours and finds it by extension discovery. */
export function filterOf(input: FilterInput): Resource {
  const named = extension(FILTER_NAME, WasmSchema, wasmConfig(input));
  return resource(FILTER_NAME, TypedExtensionConfigSchema, named);
}

export function wasmConfig({ wasmModule, filterConfig }: FilterInput) {
  return {
    config: {
      name: 'wardrop',
      rootId: 'wardrop',
      configuration: pack(StringValueSchema, { value: filterConfig }),
      failurePolicy: FailurePolicy.FAIL_RELOAD,
      // Lets the filter hold the headers and still see the body.
      allowOnHeadersStopIteration: true,
      vm: {
        case: 'vmConfig' as const,
        value: {
          vmId: VM_ID,
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
