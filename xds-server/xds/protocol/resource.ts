import { createHash } from 'node:crypto';
import { byName } from '../../collections.js';

/** One resource, encoded once and shared by every stream that carries it. */
export interface Resource {
  readonly name: string;
  /** Hash of the content: equal bytes, equal version, on every server and after every restart. */
  readonly version: string;
  /** An encoded `google.protobuf.Any`. */
  readonly any: Uint8Array;
  /** Resources of the referenced type that a client must be sent again after it took this one. */
  readonly references: readonly string[];
  /** A client that asks for this one, too, gets that first, and another version of this when it is ready with that. */
  readonly follows?: string;
}

/** All resources of one type that a client may see, by name, in the order in which they are sent. */
export interface Collection {
  readonly version: string;
  readonly resources: ReadonlyMap<string, Resource>;
  /** Those that follow another; there are none where state-of-the-world responses are complete. */
  readonly followers: readonly Resource[];
}

/** What one client may see, by type URL. */
export type View = ReadonlyMap<string, Collection>;

export function createResource(name: string, any: Uint8Array, references: readonly string[] = []): Resource {
  return { name, version: hash([any]), any, references };
}

/** The same resource, which follows another of its type. */
export function following(resource: Resource, follows: string): Resource {
  return { ...resource, follows };
}

/** Sorts by name, so that neither the order nor the version depends on how the resources were made. */
export function createCollection(resources: readonly Resource[]): Collection {
  const sorted = [...resources].sort(byName);
  const named = new Map(sorted.map((resource) => [resource.name, resource]));
  if (named.size !== sorted.length) throw new RangeError('two resources of one type have the same name');
  const followers = sorted.filter(({ follows }) => follows !== undefined);
  return { version: versionOf(sorted), resources: named, followers };
}

/** Version of a response that carries exactly these resources, given in the order of their names. */
export function versionOf(resources: readonly Resource[]): string {
  return hash(resources.flatMap(({ name, version }) => [name, '\0', version, '\0']));
}

function hash(parts: readonly (string | Uint8Array)[]): string {
  const sha = createHash('sha256');
  for (const part of parts) sha.update(part);
  return sha.digest('hex').slice(0, 16);
}
