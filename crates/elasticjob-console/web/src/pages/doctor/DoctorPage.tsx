import { Button, Stack, Text } from "@mantine/core";

import { useDoctor } from "../../api/queries";
import type { DoctorFinding } from "../../api/types";
import { useHasRole, useRegistry } from "../../app/registry";
import { Badge } from "../../components/Badge";
import { Card } from "../../components/Card";
import { Icon } from "../../components/Icon";
import { PageHeader } from "../../components/PageHeader";
import { ServerMessage } from "../../components/ServerMessage";
import { EmptyState, ErrorState, Loading } from "../../components/states";
import { useText } from "../../i18n";
import classes from "./DoctorPage.module.css";

export function DoctorPage() {
  const t = useText();
  const isAllowed = useHasRole("operator");
  return (
    <>
      <PageHeader title={t.nav.doctor} about={t.doctor.about} />
      {isAllowed ? <Findings /> : <EmptyState icon="block" title={t.needsRole(t.roles.operator)} />}
    </>
  );
}

function Findings() {
  const t = useText();
  const registry = useRegistry();
  const doctor = useDoctor(registry);
  if (doctor.isPending) return <Loading />;
  if (!doctor.data)
    return <ErrorState error={doctor.error} onRetry={() => void doctor.refetch()} />;
  const problems = doctor.data.filter((each) => each.isProblem);
  const rest = doctor.data.filter((each) => !each.isProblem);
  return (
    <Stack gap="md">
      <Card
        title={problems.length > 0 ? t.doctor.problems(problems.length) : t.doctor.noProblems}
        right={
          <Button
            variant="default"
            size="compact-sm"
            leftSection={<Icon name="refresh" size={14} />}
            loading={doctor.isFetching}
            onClick={() => void doctor.refetch()}
          >
            {t.doctor.runAgain}
          </Button>
        }
        isFlush
      >
        <ul className={classes.findings}>
          {[...problems, ...rest].map((each, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: findings have no id and may repeat, and a row keeps no state.
            <FindingRow key={index} finding={each} />
          ))}
        </ul>
      </Card>
    </Stack>
  );
}

function FindingRow({ finding }: { finding: DoctorFinding }) {
  const t = useText();
  return (
    <li className={classes.finding}>
      <div>
        <Badge tone={finding.isProblem ? "bad" : "ok"}>{t.doctor.checks[finding.check]}</Badge>
      </div>
      <div>
        <ServerMessage
          text={t.doctor.describe(finding.check, finding.isProblem, finding.message)}
          message={finding.message}
          prefix={finding.about && <b>{finding.about}: </b>}
        />
        {finding.hint && (
          <Text size="sm" c="dimmed" className="wrap" lang="en">
            {finding.hint}
          </Text>
        )}
      </div>
    </li>
  );
}
