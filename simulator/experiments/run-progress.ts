/** One line that changes on a terminal; a line for every tenth of the way elsewhere. */
export class RunProgress {
  readonly #out: NodeJS.WriteStream;
  #tenth = -1;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  begin(name: string, done: number, total: number): void {
    const text = `${done}/${total} runs · ${name}`;
    if (this.#out.isTTY) {
      this.#out.write(`\r\x1b[K${text.slice(0, (this.#out.columns || 80) - 1)}`);
      return;
    }
    const tenth = Math.floor((10 * done) / total);
    if (tenth === this.#tenth) return;
    this.#tenth = tenth;
    this.#out.write(`${text}\n`);
  }

  end(): void {
    if (this.#out.isTTY) this.#out.write('\r\x1b[K');
  }
}
