import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Any, AnySchema, anyPack } from '@bufbuild/protobuf/wkt';
import { createResource, type Resource } from '../protocol/resource.js';

/** A message wrapped for an extension's `typed_config`. */
export function pack<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Any {
  return anyPack(schema, create(schema, init));
}

/** A named extension, as most of Envoy's lists of filters and policies want it. */
export function extension<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  init: MessageInitShape<Desc>,
): { name: string; typedConfig: Any } {
  return { name, typedConfig: pack(schema, init) };
}

/** A named filter or log; the same as an extension, where the config is one of several choices. */
export function filter<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  init: MessageInitShape<Desc>,
): { name: string; configType: { case: 'typedConfig'; value: Any } } {
  return { name, configType: { case: 'typedConfig', value: pack(schema, init) } };
}

/** A resource, encoded here and never again. */
export function resource<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  init: MessageInitShape<Desc>,
  references: readonly string[] = [],
): Resource {
  return createResource(name, toBinary(AnySchema, pack(schema, init)), references);
}

/** A `google.protobuf.Duration`. */
export function duration(ms: number): { seconds: bigint; nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) };
}
