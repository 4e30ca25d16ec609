/** A form in a dialog: what is typed, what is wrong with it, and saving it. */
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type ReactNode } from 'react';
import { ApiError } from './api.ts';
import { Dialog } from './dialog.tsx';
import { fieldOf, type Problems } from './limits-draft.ts';

/** State of one form. */
export interface Form<Draft> {
  readonly draft: Draft;
  readonly problems: Problems<Draft>;
  /** A refusal that names no field of the form, or one whose problems are not shown beside it. */
  readonly refusal: string | undefined;
  readonly isPending: boolean;
  set(changes: Partial<Draft>): void;
  submit(): void;
}

/** Holds a form. `read` checks what is typed; `save` sends it. */
export function useForm<Draft extends object, Value, Answer>({
  initial,
  read,
  save,
  onSaved,
  withoutProblem = () => [],
}: {
  readonly initial: () => Draft;
  readonly read: (draft: Draft) => { readonly value: Value } | { readonly problems: Problems<Draft> };
  readonly save: (value: Value) => Promise<Answer>;
  readonly onSaved: (answer: Answer) => void;
  /** Fields that are not shown, or show no problem. */
  readonly withoutProblem?: (draft: Draft) => readonly (keyof Draft)[];
}): Form<Draft> {
  const [draft, setDraft] = useState(initial);
  const [own, setOwn] = useState<Problems<Draft>>({});
  const saving = useMutation({ mutationFn: save, meta: { quiet: true }, onSuccess: onSaved });
  const named = saving.error instanceof ApiError ? fieldOf(saving.error.param, draft) : undefined;
  const field = named !== undefined && withoutProblem(draft).includes(named) ? undefined : named;
  const refused = (field === undefined ? {} : problemsAt(field, saving.error)) as Problems<Draft>;
  return {
    draft,
    problems: { ...refused, ...own },
    refusal: saving.error !== null && field === undefined ? saving.error.message : undefined,
    isPending: saving.isPending,
    set(changes) {
      setOwn({});
      if (saving.isError) saving.reset();
      setDraft((before) => ({ ...before, ...changes }));
    },
    submit() {
      const result = read(draft);
      if ('problems' in result) setOwn(result.problems);
      else saving.mutate(result.value);
    },
  };
}

/** Returns a refusal at its field, and at the path of the value within it: `pricing.models.0.factor`. */
function problemsAt(field: string, error: Error | null): object {
  const path = error instanceof ApiError ? error.param?.replaceAll(/\[(\d+)\]/g, '.$1') : undefined;
  return { [field]: error?.message, [path ?? field]: error?.message };
}

/** A dialog with a form in it. */
export function FormDialog<Draft>({
  title,
  action,
  form,
  onClose,
  children,
  kind = '',
  danger = false,
}: {
  readonly title: string;
  readonly action: string;
  readonly kind?: '' | 'narrow';
  /** True where the action takes something away. */
  readonly danger?: boolean;
  readonly form: Form<Draft>;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const id = useId();
  return (
    <Dialog
      title={title}
      kind={kind}
      onClose={onClose}
      bottom={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            form={id}
            className={`button primary${danger ? ' danger' : ''}`}
            disabled={form.isPending}
          >
            {action}
          </button>
        </>
      }
    >
      <form
        id={id}
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          form.submit();
        }}
      >
        {form.refusal !== undefined && (
          <p className="notice bad" role="alert">
            {form.refusal}
          </p>
        )}
        {children}
      </form>
    </Dialog>
  );
}
