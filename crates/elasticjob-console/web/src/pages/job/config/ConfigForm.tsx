import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import {
  keepPreviousData,
  type UseMutationResult,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { queryString, request } from "../../../api/client";
import { toProblem } from "../../../api/problem";
import { jobPath } from "../../../api/queries";
import type { ConfigPlan, Properties, StoredConfig } from "../../../api/types";
import { useHasRole, useRegistry } from "../../../app/registry";
import { ProblemText } from "../../../components/ProblemText";
import { Timestamp } from "../../../components/Timestamp";
import { UnsavedChanges } from "../../../components/UnsavedChanges";
import { useText } from "../../../i18n";
import { ConfigSections } from "./ConfigSections";
import { type Draft, isEdited, missingProperty, rebaseDraft, toDraft, toProperties } from "./draft";
import { FIELD_KEYS } from "./fields";
import { ReviewDialog } from "./ReviewDialog";

interface Props {
  job: string;
  /** The configuration before the edits. */
  base: Properties;
  about?: string;
  writtenAt?: string;
  /** Handler type of a new job. */
  handler?: string;
  store: UseMutationResult<StoredConfig, unknown, Properties>;
  onStored?: () => void;
  /** Cache keys to refetch after a version conflict. */
  invalidates?: readonly (readonly unknown[])[];
  /** Notice shown when a newer version is stored. */
  conflictNotice?: (rebase: (theirs: Properties) => void) => ReactNode;
}

/** Edits a configuration. The server validates it while the user types, and the changes are reviewed before they are saved. */
export function ConfigForm({
  job,
  base,
  about,
  writtenAt,
  handler,
  store,
  onStored,
  invalidates,
  conflictNotice,
}: Props) {
  const t = useText();
  const registry = useRegistry();
  const client = useQueryClient();
  const isAllowed = useHasRole("admin");
  const [draft, setDraft] = useState<Draft>(() => toDraft(base));
  const [isReviewing, setReviewing] = useState(false);
  const properties = useMemo(() => toProperties(draft, base), [draft, base]);
  const [planned] = useDebouncedValue(properties, 350);

  const plan = useQuery({
    queryKey: ["plan", registry, job, handler ?? "", planned],
    queryFn: () =>
      request<ConfigPlan>(
        "POST",
        `${jobPath(registry, job)}/config/plan${queryString({ handler })}`,
        planned,
      ),
    // The plan compares with stored secrets, so only users who may save it may ask for it.
    enabled: job !== "" && isAllowed,
    retry: false,
    gcTime: 10_000,
    placeholderData: keepPreviousData,
  });
  const problem = plan.isError && !plan.data ? toProblem(plan.error) : null;
  // The server accepts a script job without a command, which fails at its first run.
  const missing = missingProperty(draft, handler);
  const errors = {
    ...(missing && { [`props.${missing}`]: t.config.required }),
    ...(problem?.field && { [problem.field]: errorText(problem) }),
  };
  const isFormProblem = problem && !(problem.field && isShown(problem.field, draft));
  const differences = plan.data?.differences ?? [];
  const isNew = plan.data?.change === "new";
  const count = isNew ? 1 : differences.length;
  // Only the validated configuration that the dialog shows is saved; it lags behind typing by the debounce delay.
  const isPlanCurrent = planned === properties && !plan.isFetching;

  // Saving and leaving happen before the next render, so what is stored is remembered outside the state.
  const stored = useRef<Draft | null>(null);
  const isDirty = useCallback(
    () => draft !== stored.current && isEdited(draft, base),
    [draft, base],
  );

  const change = (key: string, value: string | boolean) =>
    setDraft((before) => ({ ...before, values: { ...before.values, [key]: value } }));

  const onStoreError = (error: unknown) => {
    if (toProblem(error).code !== "preconditionFailed") return;
    // A newer version was stored: refetch it, and the form shows the conflict notice.
    setReviewing(false);
    for (const queryKey of invalidates ?? []) void client.invalidateQueries({ queryKey });
  };

  // An invalid configuration closes the review; the user fixes it in the form.
  const hasProblem = problem !== null;
  useEffect(() => {
    if (hasProblem) setReviewing(false);
  }, [hasProblem]);

  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setReviewing(true);
        }}
      >
        <Stack gap="md">
          {conflictNotice?.((theirs) => setDraft((mine) => rebaseDraft(mine, base, theirs)))}
          <ConfigSections
            draft={draft}
            errors={errors}
            isReadOnly={!isAllowed}
            onChange={change}
            onOthers={(others) => setDraft((before) => ({ ...before, others }))}
          />
          <Group
            className="card"
            px="md"
            py="sm"
            justify="space-between"
            style={{ position: "sticky", bottom: 8, zIndex: 2 }}
          >
            <div aria-live="polite">
              {isFormProblem && problem ? (
                <ProblemText problem={problem} />
              ) : problem ? (
                <Text size="sm" c="var(--bad)">
                  {t.config.hasInvalidField}
                </Text>
              ) : missing ? (
                <Text size="sm" c="var(--bad)">
                  {t.config.requiredProperty(missing)}
                </Text>
              ) : (
                <Text size="sm" c="dimmed" component="div">
                  {isAllowed
                    ? count > 0
                      ? t.config.changes(count)
                      : t.config.noChanges
                    : t.needsRole(t.roles.admin)}
                  {about && ` · ${about}`}
                  {writtenAt && (
                    <>
                      {" · "}
                      <Timestamp at={writtenAt} />
                    </>
                  )}
                </Text>
              )}
            </div>
            <Group gap="xs">
              <Button
                variant="default"
                disabled={count === 0 && !problem}
                onClick={() => setDraft(toDraft(base))}
              >
                {t.config.discard}
              </Button>
              <Button
                type="submit"
                disabled={!isAllowed || count === 0 || hasProblem || missing !== undefined}
              >
                {t.config.review}
              </Button>
            </Group>
          </Group>
        </Stack>
        {isReviewing && plan.data && (
          <ReviewDialog
            job={job}
            plan={plan.data}
            isBusy={store.isPending || !isPlanCurrent}
            onSave={() =>
              store.mutate(planned, {
                onSuccess: () => {
                  stored.current = draft;
                  setReviewing(false);
                  onStored?.();
                },
                onError: onStoreError,
              })
            }
            onClose={() => setReviewing(false)}
          />
        )}
      </form>
      {/* Not in the form: the dialog has one of its own. */}
      <UnsavedChanges isDirty={isDirty} />
    </>
  );
}

const errorText = (problem: { detail: string; hint?: string }) =>
  problem.hint ? `${problem.detail} – ${problem.hint}` : problem.detail;

const isShown = (field: string, draft: Draft) =>
  FIELD_KEYS.has(field) || draft.others.some(({ key }) => `props.${key}` === field);
