/** Turns of a conversation of the playground. */
import type { Turn } from '../parts/wires.ts';

/** Shows the turns. `startAnew` is called to forget them. */
export function Conversation({
  turns,
  startAnew,
}: {
  readonly turns: readonly Turn[];
  readonly startAnew: () => void;
}) {
  return (
    <section className="card" aria-label="Conversation">
      <header>
        <h2>Conversation</h2>
        <button type="button" className="button small push" onClick={startAnew}>
          Start anew
        </button>
      </header>
      <ol className="body stack turns" tabIndex={0} aria-label="Turns">
        {turns.map(({ role, text }, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- turns are only added at the end
          <li key={index} data-turn={role}>
            <strong className="small">{role === 'user' ? 'You' : 'Model'}</strong>
            <p>{text}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}
