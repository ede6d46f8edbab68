const RENEW_SECONDS = 5;
const PATIENCE_SECONDS = 10;

/** What renews a page without scripts, for its head. */
export const RENEWAL_WITHOUT_SCRIPT = `<noscript><meta http-equiv="refresh" content="${RENEW_SECONDS}"></noscript>`;

/**
 * Renews the page's `main` in place, for the end of its body: a page that is loaded anew when the server is dead is the
 * browser's own, and what the server said last is gone when it is looked for. What a reader has scrolled, chosen or marked stays.
 */
export const RENEWAL = `<script>
const silence = document.getElementById('silence');
let heardAt = new Date();
async function newPage() {
  const answer = await fetch(location.href, { signal: AbortSignal.timeout(${1000 * PATIENCE_SECONDS}) });
  if (!answer.ok) throw new Error('it answers ' + answer.status);
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (page.querySelector('main') === null) throw new Error('something else answers');
  return page;
}
function show(page) {
  if (!getSelection().isCollapsed) return;
  const scrolled = [...document.querySelectorAll('.scroll')].map((it) => it.scrollLeft);
  const chosen = document.activeElement?.href;
  document.title = page.title;
  document.querySelector('main').replaceWith(page.querySelector('main'));
  document.querySelectorAll('.scroll').forEach((it, index) => { it.scrollLeft = scrolled[index] ?? 0; });
  if (chosen) [...document.links].find((it) => it.href === chosen)?.focus({ preventScroll: true });
}
async function renew() {
  try {
    show(await newPage());
    heardAt = new Date();
    silence.textContent = '';
  } catch (error) {
    silence.textContent = 'The control server cannot be reached (' + error.message + '). Envoys go on with what they have. Below is how things were at ' +
      heardAt.toISOString() + ', ' + Math.round((Date.now() - heardAt) / 1000) + ' s ago.';
  }
  setTimeout(renew, ${1000 * RENEW_SECONDS});
}
setTimeout(renew, ${1000 * RENEW_SECONDS});
</script>`;
