/** Fields of a form for single values: texts, numbers, choices, lists of texts, secrets and JSON. */
import { useState } from 'react';
import { Field } from './fields.tsx';
import { isHidden, isMembers, type JsonSchema } from './json-schema.ts';
import { namedSecret, secretSources } from './secret-forms.ts';
import { ago } from './text.ts';

/** One value in a form. */
export interface LeafProps {
  readonly label: string;
  readonly schema: JsonSchema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly problem: string | undefined;
}

/** Returns the description of a value in its schema. */
export function hintOf({ description, default: usual }: JsonSchema): string | undefined {
  const said = description === undefined ? [] : [description.charAt(0).toUpperCase() + description.slice(1)];
  const isTold = usual !== undefined && !isMembers(usual) && !Array.isArray(usual);
  const words = [...said, ...(isTold ? [`Default: ${String(usual)}`] : [])];
  return words.length === 0 ? undefined : `${words.join('. ')}.`;
}

/** A text in one line. */
export function TextLeaf({ label, schema, value, onChange, problem }: LeafProps) {
  return (
    <Field label={label} hint={hintOf(schema)} problem={problem}>
      {(props) => (
        <input
          {...props}
          autoComplete="off"
          spellCheck={false}
          value={typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

/** A number field. Other text is sent unchanged, so that the gateway reports the error. */
export function NumberLeaf({ label, schema, value, onChange, problem }: LeafProps) {
  const [text, setText] = useState(value === undefined ? '' : String(value));
  return (
    <Field label={label} hint={hintOf(schema)} problem={problem}>
      {(props) => (
        <input
          {...props}
          autoComplete="off"
          inputMode="decimal"
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            const typed = target.value.trim();
            const number = Number(typed);
            onChange(typed === '' ? undefined : Number.isNaN(number) ? typed : number);
          }}
        />
      )}
    </Field>
  );
}

/** One of a few values, or none of them. */
export function ChoiceLeaf({ label, schema, value, onChange, problem }: LeafProps) {
  const values =
    schema.type === 'boolean' && schema.const === undefined ? [true, false] : (schema.enum ?? [schema.const]);
  const words = (one: unknown): string => (one === true ? 'Yes' : one === false ? 'No' : String(one));
  return (
    <Field label={label} hint={hintOf(schema)} problem={problem}>
      {(props) => (
        <select
          {...props}
          value={values.indexOf(value)}
          onChange={({ target }) => onChange(values[Number(target.value)])}
        >
          <option value={-1}>Not set</option>
          {values.map((one, index) => (
            <option key={String(one)} value={index}>
              {words(one)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Texts, one a line. */
export function LinesLeaf({ label, schema, value, onChange, problem }: LeafProps) {
  const [text, setText] = useState(Array.isArray(value) ? value.join('\n') : '');
  const hint = [hintOf(schema), 'One a line.'].filter((one) => one !== undefined).join(' ');
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(props) => (
        <textarea
          {...props}
          rows={Math.min(8, Math.max(2, text.split('\n').length))}
          spellCheck={false}
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            const lines = target.value
              .split('\n')
              .map((line) => line.trim())
              .filter((line) => line !== '');
            onChange(lines.length === 0 ? undefined : lines);
          }}
        />
      )}
    </Field>
  );
}

/** A field for any value as JSON. Text that is not JSON counts as a string. */
export function JsonLeaf({ label, schema, value, onChange, problem }: LeafProps) {
  const [text, setText] = useState(
    value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2),
  );
  return (
    <Field
      label={label}
      hint={[hintOf(schema), 'JSON, or a text.'].filter(Boolean).join(' ')}
      problem={problem}
    >
      {(props) => (
        <textarea
          {...props}
          className="mono"
          rows={3}
          spellCheck={false}
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            try {
              onChange(target.value.trim() === '' ? undefined : (JSON.parse(target.value) as unknown));
            } catch {
              onChange(target.value);
            }
          }}
        />
      )}
    </Field>
  );
}

/** A field for a secret: typed again, kept as stored, or a reference that the config file allows. */
export function SecretLeaf({ label, schema, value, onChange, problem }: LeafProps) {
  const [stored, setStored] = useState<unknown>();
  const named = namedSecret(value);
  const source = named?.form ?? 'text';
  if (isHidden(value)) {
    const { last4, setAt } = value;
    return (
      <Field
        label={label}
        hint="It is not shown again. It stays as it is unless you replace it."
        problem={problem}
      >
        {({ id, ...props }) => (
          <div className="row">
            <output id={id} {...props} className="mono">
              {last4 === '' ? '••••••••' : `••••${last4}`}
              {setAt !== undefined && <span className="muted"> set {ago(setAt)}</span>}
            </output>
            <button
              type="button"
              className="button small"
              aria-label={`Replace ${label}`}
              onClick={() => {
                setStored(value);
                onChange('');
              }}
            >
              Replace
            </button>
          </div>
        )}
      </Field>
    );
  }
  const text = named === undefined ? value : named.name;
  const isAddress = schema.secret === 'url' && source === 'text';
  return (
    <Field label={label} hint={hintOf(schema)} problem={problem}>
      {(props) => (
        <div className="secret-field">
          {!isAddress && (
            <select
              aria-label={`Where ${label} is read from`}
              value={source}
              onChange={({ target }) => onChange(target.value === 'text' ? '' : { [target.value]: '' })}
            >
              {secretSources.map(([name, title]) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          )}
          <input
            {...props}
            type={source === 'text' && !isAddress ? 'password' : 'text'}
            autoComplete={source === 'text' && !isAddress ? 'new-password' : 'off'}
            spellCheck={false}
            value={typeof text === 'string' ? text : ''}
            placeholder={named?.example}
            onChange={({ target }) => onChange(source === 'text' ? target.value : { [source]: target.value })}
          />
          {stored !== undefined && (
            <button type="button" className="button small" onClick={() => onChange(stored)}>
              Keep it
            </button>
          )}
        </div>
      )}
    </Field>
  );
}
