import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import {
  keepPreviousData,
  type UseMutationResult,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";

import { ask, query } from "../../../api/client";
import { asProblem } from "../../../api/problem";
import { atJob } from "../../../api/queries";
import type { Planned, Properties, Stored } from "../../../api/types";
import { useMay, useRegistry } from "../../../app/registry";
import { useText } from "../../../i18n";
import { ProblemText } from "../../../parts/ProblemText";
import { When } from "../../../parts/When";
import { type Draft, rebased, toDraft, toProperties } from "./draft";
import { KNOWN } from "./fields";
import { Review } from "./Review";
import { Sections } from "./Sections";

interface Props {
  job: string;
  /** What it starts from. */
  base: Properties;
  about?: string;
  writtenAt?: string;
  /** What runs it, for a new one. */
  handler?: string;
  store: UseMutationResult<Stored, unknown, Properties>;
  /** What is looked at again when somebody was faster. */
  touched?: readonly (readonly unknown[])[];
  /** Said when a newer version is stored. */
  newer?: (rebase: (theirs: Properties) => void) => ReactNode;
}

/** A configuration to be edited: tried by the server while it is typed, shown as a difference before it is stored. */
export function ConfigForm({ job, base, about, writtenAt, handler, store, touched, newer }: Props) {
  const t = useText();
  const registry = useRegistry();
  const client = useQueryClient();
  const may = useMay("admin");
  const [draft, setDraft] = useState<Draft>(() => toDraft(base));
  const [isReviewed, setReviewed] = useState(false);
  const sent = useMemo(() => toProperties(draft, base), [draft, base]);
  const [tried] = useDebouncedValue(sent, 350);

  const plan = useQuery({
    queryKey: ["plan", registry, job, handler ?? "", tried],
    queryFn: () =>
      ask<Planned>("POST", `${atJob(registry, job)}/config/plan${query({ handler })}`, tried),
    enabled: job !== "",
    retry: false,
    gcTime: 10_000,
    placeholderData: keepPreviousData,
  });
  const problem = plan.isError && !plan.data ? asProblem(plan.error) : null;
  const errors = problem?.field ? { [problem.field]: says(problem) } : {};
  const isElsewhere = problem && !(problem.field && isShown(problem.field, draft));
  const differences = plan.data?.differences ?? [];
  const isNew = plan.data?.change === "new";
  const count = isNew ? 1 : differences.length;
  // What is stored is what was tried and shown, and that is a moment behind what is typed.
  const isTried = tried === sent && !plan.isFetching;

  const change = (key: string, value: string | boolean) =>
    setDraft((before) => ({ ...before, values: { ...before.values, [key]: value } }));

  const refused = (error: unknown) => {
    if (asProblem(error).code !== "preconditionFailed") return;
    // Somebody was faster: what they stored is looked at, and the form says so.
    setReviewed(false);
    for (const queryKey of touched ?? []) void client.invalidateQueries({ queryKey });
  };

  // What turned out wrong is mended in the form, and reviewed when somebody asks for it again.
  const isWrong = problem !== null;
  useEffect(() => {
    if (isWrong) setReviewed(false);
  }, [isWrong]);

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setReviewed(true);
      }}
    >
      <Stack gap="md">
        {newer?.((theirs) => setDraft((mine) => rebased(mine, base, theirs)))}
        <Sections
          draft={draft}
          errors={errors}
          isReadOnly={!may}
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
            {isElsewhere && problem ? (
              <ProblemText problem={problem} />
            ) : problem ? (
              <Text size="sm" c="var(--bad)">
                {t.config.lookAbove}
              </Text>
            ) : (
              <Text size="sm" c="dimmed" component="div">
                {may
                  ? count > 0
                    ? t.config.changes(count)
                    : t.config.noChanges
                  : t.needsRole(t.roles.admin)}
                {about && ` · ${about}`}
                {writtenAt && (
                  <>
                    {" · "}
                    <When at={writtenAt} />
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
              {t.config.reset}
            </Button>
            <Button type="submit" disabled={!may || count === 0 || problem !== null}>
              {t.config.review}
            </Button>
          </Group>
        </Group>
      </Stack>
      {isReviewed && plan.data && (
        <Review
          job={job}
          plan={plan.data}
          isBusy={store.isPending || !isTried}
          onStore={() =>
            store.mutate(tried, { onSuccess: () => setReviewed(false), onError: refused })
          }
          onClose={() => setReviewed(false)}
        />
      )}
    </form>
  );
}

const says = (problem: { detail: string; hint?: string }) =>
  problem.hint ? `${problem.detail} – ${problem.hint}` : problem.detail;

const isShown = (field: string, draft: Draft) =>
  KNOWN.has(field) || draft.others.some(({ key }) => `props.${key}` === field);
