import { assemble, readModule } from '../../simulator/filter-host/module-text.js';
import { Random } from '../../simulator/random.js';

/** The module with its functions in another order, the same for the same seed: it does the same, with its code in other places. */
export function inAnotherOrder(wasm: Uint8Array, seed: number): Uint8Array {
  const random = new Random(seed, 'function order');
  const { tree, features } = readModule(wasm);
  const functions = random.shuffled(tree.filter((field) => field[0] === 'func'));
  return assemble({ tree: tree.map((field) => (field[0] === 'func' ? functions.pop()! : field)), features });
}
