import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { api } from '../parts/api.ts';
import { Badge, Status } from '../parts/badges.tsx';
import { exchange, type Answer } from '../parts/exchange.ts';
import { Field, Segments } from '../parts/fields.tsx';
import { Empty } from '../parts/states.tsx';
import { duration } from '../parts/text.ts';
import { wires, type Question, type Turn, type Wire, type WireRequest } from '../parts/wires.ts';
import { CallCost } from './call-cost.tsx';
import { Conversation } from './conversation.tsx';
import { curlOf, WireView } from './wire-view.tsx';

/** The API key lives as long as the page, and nowhere but here. */
let keptKey = '';

/** Asks a model in any of the client formats and shows what goes over the wire. */
export function Playground() {
  const models = useQuery({ queryKey: ['models'], queryFn: api.models });
  const [format, setFormat] = useState(wires[0]!.name);
  const [key, setKey] = useState(keptKey);
  const [model, setModel] = useState<string>();
  const [system, setSystem] = useState('');
  const [prompt, setPrompt] = useState('Say hello in one sentence.');
  const [maxTokens, setMaxTokens] = useState('');
  const [temperature, setTemperature] = useState('');
  const [stream, setStream] = useState(true);
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const { asked, answer, ask, stop, forget } = useAnswer();

  const names = (models.data?.models ?? []).map(({ id }) => id).filter((id) => !id.includes('*'));
  const chosen = model ?? names[0] ?? '';
  const wire = wires.find(({ name }) => name === format) ?? wires[0]!;
  const question: Question = {
    turns,
    model: chosen,
    system: system.trim(),
    prompt,
    maxTokens: number(maxTokens),
    temperature: number(temperature),
    stream,
  };
  const request = wire.request(question);
  const busy = answer?.state === 'running';

  const send = (event: FormEvent): void => {
    event.preventDefault();
    ask(wire, request, prompt, key.trim());
  };

  const goOn = (text: string): void => {
    setTurns([...turns, { role: 'user', text: asked }, { role: 'assistant', text }]);
    forget();
    setPrompt('');
  };

  return (
    <>
      <header>
        <h1>Playground</h1>
        <p>A real call with a real key: it is counted, charged and logged.</p>
      </header>
      <div className="playground">
        <form className="card" onSubmit={send}>
          <div className="body stack">
            <KeyField value={key} onChange={setKey} />
            <FormatField value={format} onChange={setFormat} />
            <ModelField
              names={names}
              isEmpty={models.data?.models.length === 0}
              value={chosen}
              onChange={setModel}
            />
            <PromptField label="System prompt" rows={2} value={system} onChange={setSystem} />
            <PromptField label="Prompt" rows={5} required value={prompt} onChange={setPrompt} />
            <div className="grid thirds">
              <NumberField label="Max tokens" inputMode="numeric" value={maxTokens} onChange={setMaxTokens} />
              <NumberField
                label="Temperature"
                inputMode="decimal"
                value={temperature}
                onChange={setTemperature}
              />
            </div>
            <SendRow stream={stream} busy={busy} onStream={setStream} onStop={stop} />
          </div>
        </form>
        <div className="stack">
          {turns.length > 0 && <Conversation turns={turns} startAnew={() => setTurns([])} />}
          <Shown answer={answer} goOn={goOn} />
          <WireView request={request} answer={answer} curl={curlOf(request, wire.authorize('$API_KEY'))} />
        </div>
      </div>
    </>
  );
}

/** Sends requests and keeps the answer to the last one. A request is aborted by the next one and when the page is left. */
function useAnswer() {
  /** The prompt of the answer that is shown. */
  const [asked, setAsked] = useState('');
  const [answer, setAnswer] = useState<Answer>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  return {
    asked,
    answer,
    ask(wire: Wire, request: WireRequest, prompt: string, key: string): void {
      running.current?.abort();
      const controller = (running.current = new AbortController());
      setAsked(prompt);
      void exchange(wire, request, key, controller.signal, (next) => {
        if (running.current === controller) setAnswer(next);
      });
    },
    stop: () => running.current?.abort(),
    forget: () => setAnswer(undefined),
  };
}

/** Returns the number in a field; undefined for anything else. */
function number(text: string): number | undefined {
  return text.trim() === '' || Number.isNaN(Number(text)) ? undefined : Number(text);
}

interface TextProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

function KeyField({ value, onChange }: TextProps) {
  return (
    <Field label="API key" hint="Kept in the memory of this page alone.">
      {(props) => (
        <input
          {...props}
          type="password"
          autoComplete="off"
          placeholder="sk-…"
          required
          value={value}
          onChange={({ target }) => {
            keptKey = target.value;
            onChange(target.value);
          }}
        />
      )}
    </Field>
  );
}

function FormatField({ value, onChange }: TextProps) {
  return (
    <div className="field">
      <span className="label">Client format</span>
      <Segments
        label="Client format"
        options={wires.map(({ name, title }) => [name, title] as const)}
        value={value}
        onChange={onChange}
      />
    </div>
  );
}

function ModelField({
  names,
  isEmpty,
  value,
  onChange,
}: TextProps & { readonly names: readonly string[]; readonly isEmpty: boolean }) {
  return (
    <Field
      label="Model"
      hint={
        isEmpty ? 'No model is offered: none of your API keys may call one. Make a key first.' : undefined
      }
    >
      {(props) => (
        <>
          <input
            {...props}
            list="playground-models"
            required
            placeholder="a model"
            value={value}
            onChange={({ target }) => onChange(target.value)}
          />
          <datalist id="playground-models">
            {names.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function PromptField({
  label,
  rows,
  required = false,
  value,
  onChange,
}: TextProps & { readonly label: string; readonly rows: number; readonly required?: boolean }) {
  return (
    <Field label={label}>
      {(props) => (
        <textarea
          {...props}
          rows={rows}
          required={required}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

function NumberField({
  label,
  inputMode,
  value,
  onChange,
}: TextProps & { readonly label: string; readonly inputMode: 'numeric' | 'decimal' }) {
  return (
    <Field label={label}>
      {(props) => (
        <input
          {...props}
          inputMode={inputMode}
          placeholder="default"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

function SendRow({
  stream,
  busy,
  onStream,
  onStop,
}: {
  readonly stream: boolean;
  readonly busy: boolean;
  readonly onStream: (stream: boolean) => void;
  readonly onStop: () => void;
}) {
  return (
    <div className="row">
      <label className="check">
        <input type="checkbox" checked={stream} onChange={({ target }) => onStream(target.checked)} />
        Stream
      </label>
      <span className="push" />
      {busy && (
        <button type="button" className="button" onClick={onStop}>
          Stop
        </button>
      )}
      <button type="submit" className="button primary" disabled={busy}>
        {busy ? 'Answering…' : 'Send'}
      </button>
    </div>
  );
}

function Shown({
  answer,
  goOn,
}: {
  readonly answer: Answer | undefined;
  readonly goOn: (text: string) => void;
}) {
  if (answer === undefined) {
    return (
      <section className="card" aria-label="Answer">
        <Empty title="The answer comes here">
          <p>Paste an API key, pick a model and a client format, and send.</p>
        </Empty>
      </section>
    );
  }
  const { state, status, text, thinking, usage, error, firstMs, ms, requestId } = answer;
  return (
    <section className="card" aria-label="Answer">
      <header>
        <h2>Answer</h2>
        {status !== undefined && <Status status={status} />}
        {state === 'running' && <Badge kind="accent">streaming</Badge>}
        {state === 'stopped' && <Badge>stopped</Badge>}
        <span className="aside">
          first byte {duration(firstMs)} · {duration(ms)}
        </span>
      </header>
      <div className="body stack">
        {thinking !== '' && <p className="thinking">{thinking}</p>}
        <div className="answer" data-answer={state} aria-live="polite" aria-busy={state === 'running'}>
          {text}
        </div>
        {error !== undefined && (
          <p className="notice bad" role="alert">
            {error}
          </p>
        )}
        {usage !== undefined && (
          <details>
            <summary className="small">Usage</summary>
            <pre className="block">{JSON.stringify(usage, null, 2)}</pre>
          </details>
        )}
        {state !== 'running' && (
          <div className="row">
            {requestId !== undefined && <CallCost id={requestId} />}
            {state === 'done' && text !== '' && (
              <button type="button" className="button small push" onClick={() => goOn(text)}>
                Continue the conversation
              </button>
            )}
          </div>
        )}
      </div>
    </section>
  );
}
