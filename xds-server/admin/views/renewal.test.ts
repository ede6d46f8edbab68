import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { RENEWAL } from './renewal.js';

/** A browser with as much of a document as the script touches. */
class Browser {
  readonly silence = { textContent: '' };
  readonly scrolling = { scrollLeft: 77 };
  shown = { main: 'first' };
  title = '';
  marked = false;
  answer: () => Promise<unknown> = () => Promise.reject(new Error('refused'));
  #due: (() => Promise<void>)[] = [];

  constructor() {
    const document = {
      getElementById: () => this.silence,
      querySelector: () => ({ replaceWith: (main: string) => this.#replace(main) }),
      querySelectorAll: () => [this.scrolling],
      activeElement: null,
      links: [],
    };
    Object.defineProperty(document, 'title', { set: (title: string) => (this.title = title) });
    const page = (text: string) => ({ title: 'new', querySelector: () => (text === '' ? null : text) });
    runInNewContext(RENEWAL.replace(/<\/?script>/g, ''), {
      document,
      DOMParser: class {
        parseFromString = page;
      },
      location: { href: '/' },
      AbortSignal,
      Date,
      fetch: () => this.answer(),
      getSelection: () => ({ isCollapsed: !this.marked }),
      setTimeout: (call: () => Promise<void>) => this.#due.push(call),
    });
  }

  #replace(main: string): void {
    this.shown = { main };
    this.scrolling.scrollLeft = 0;
  }

  async renew(): Promise<void> {
    for (const call of this.#due.splice(0)) await call();
  }
}

const says = (text: string, ok = true) => ({ ok, status: ok ? 200 : 503, text: async () => text });

it('shows what is new and leaves what was scrolled where it was', async () => {
  const browser = new Browser();
  browser.answer = async () => says('second');
  await browser.renew();
  expect(browser).toMatchObject({ shown: { main: 'second' }, title: 'new', scrolling: { scrollLeft: 77 } });
});

it.each([
  ['is gone', () => Promise.reject(new Error('refused')), 'refused'],
  ['is at its end', async () => says('', false), 'it answers 503'],
  ['has given its port to another', async () => says(''), 'something else answers'],
])('keeps what it showed when the control server %s, says so, and goes on asking', async (_, answer, why) => {
  const browser = new Browser();
  browser.answer = answer;
  await browser.renew();
  expect(browser.shown.main).toBe('first');
  expect(browser.silence.textContent).toMatch(
    new RegExp(`cannot be reached \\(${why}\\).*at \\d{4}-.*Z, \\d+ s ago`),
  );
  browser.answer = async () => says('second');
  await browser.renew();
  expect(browser).toMatchObject({ shown: { main: 'second' }, silence: { textContent: '' } });
});

it('takes nothing away that a reader has marked', async () => {
  const browser = new Browser();
  browser.answer = async () => says('second');
  browser.marked = true;
  await browser.renew();
  expect(browser.shown.main).toBe('first');
});
