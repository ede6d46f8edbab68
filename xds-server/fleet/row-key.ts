/** A row: the traffic of one frontend for one pool. */
export interface RowName {
  readonly frontendId: string;
  readonly poolId: string;
}

/** Names a row in maps; ids have no spaces. */
export function rowKey({ frontendId, poolId }: RowName): string {
  return `${frontendId} ${poolId}`;
}
