-- reads: computations, groups, exceptions, catalog
-- Computations of one cluster, of `clusters` or of an account. What became of each says `status`: one whose cluster has
-- ended at `now` does not run, nobody can tell of one that has no group of its own, nor how long it took, and one of
-- which a group was forgotten before it was done is unfinished, unless something failed. `work_us` is the workers' time
-- in its groups, `dollars` the part of its cluster's cost that this is of the thread time; whose the cluster is, and
-- what it cost, stands in `catalog`.
--
-- `since` and `until` take those of which a part lies between them, `ids` ('<boot>-<no>'), `code` (a fingerprint),
-- `user` and `status` narrow them; `sort` is start, duration, n_tasks, n_tasks_erred, work or cost, with a leading - for the
-- greatest first.
WITH mine AS (
    SELECT *, fingerprint(code) AS fingerprint
    FROM computations
    WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
      AND ($clusters::VARCHAR[] IS NULL OR cluster IN (SELECT unnest($clusters::VARCHAR[])))
      AND ($ids::VARCHAR[] IS NULL OR boot || '-' || no IN (SELECT unnest($ids::VARCHAR[])))
      AND ($since::TIMESTAMPTZ IS NULL OR coalesce(stop_at, "at") >= $since)
      AND ($until::TIMESTAMPTZ IS NULL OR start_at <= $until)
      AND ($code::VARCHAR IS NULL OR fingerprint(code) = $code)
),
-- Dask forgets the state of a failed task with the task; its exception stays.
failed AS (
    SELECT cluster, boot, group_no AS no, capped(sum(count)) AS n_tasks_erred
    FROM exceptions
    WHERE group_no IS NOT NULL
    GROUP BY cluster, boot, group_no
),
made AS (
    SELECT
        g.cluster,
        g.boot,
        g.computation AS no,
        capped(sum(g.n_tasks)) AS n_tasks,
        capped(sum(coalesce(f.n_tasks_erred, 0))) AS n_tasks_erred,
        -- Of such a group none was done when all were forgotten.
        bool_or(
            g.start_at IS NULL AND g.states['forgotten'] > 0
            AND list_sum(map_values(g.states)) = g.states['forgotten']
        ) AS is_given_up,
        bool_or(f.n_tasks_erred IS NOT NULL OR coalesce(g.states['erred'], 0) > 0) AS is_failed,
        capped(sum(greatest(coalesce(list_sum(map_values(g.action_us)), 0), 0))) AS work_us
    FROM groups g
    LEFT JOIN failed f USING (cluster, boot, no)
    WHERE g.computation IS NOT NULL
    GROUP BY g.cluster, g.boot, g.computation
),
judged AS (
    SELECT
        m.*,
        c.name AS cluster_name,
        c."user",
        c.quality,
        c.currency,
        CASE WHEN m.stop_at IS NOT NULL AND made.no IS NOT NULL THEN greatest(epoch_ms(m.stop_at) - epoch_ms(m.start_at), 0) END AS duration_ms,
        coalesce(made.n_tasks, 0) AS n_tasks,
        coalesce(made.n_tasks_erred, 0) AS n_tasks_erred,
        coalesce(made.work_us, 0) AS work_us,
        -- What a thread's time cost stays as it is while the cluster goes on; how much there was of it does not.
        CASE WHEN c.thread_us > 0 THEN c.dollars / c.thread_us END AS dollars_per_us,
        least(dollars_per_us * coalesce(made.work_us, 0), c.dollars) AS dollars,
        CASE
            WHEN m.stop_at IS NULL
                AND (c.phase = 'closed' OR epoch_ms($now::TIMESTAMPTZ) - epoch_ms(c.last_received_at) > c.next_s * 3000)
                THEN 'unfinished'
            WHEN m.stop_at IS NULL THEN 'running'
            WHEN made.no IS NULL THEN 'unknown'
            WHEN made.is_failed THEN 'erred'
            WHEN made.is_given_up THEN 'unfinished'
            ELSE 'finished'
        END AS status
    FROM mine m
    LEFT JOIN made USING (cluster, boot, no)
    LEFT JOIN catalog c USING (cluster)
    WHERE $user::VARCHAR IS NULL OR c."user" = $user
)
SELECT * EXCLUDE (placed)
FROM (
    SELECT
        *,
        CASE ltrim(coalesce($sort::VARCHAR, '-start'), '-')
            WHEN 'duration' THEN duration_ms::DOUBLE
            WHEN 'n_tasks' THEN n_tasks::DOUBLE
            WHEN 'n_tasks_erred' THEN n_tasks_erred::DOUBLE
            WHEN 'work' THEN work_us::DOUBLE
            WHEN 'cost' THEN dollars
            ELSE epoch_ms(start_at)::DOUBLE
        END AS placed
    FROM judged
    WHERE $status::VARCHAR IS NULL OR status = $status
)
ORDER BY
    CASE WHEN coalesce($sort::VARCHAR, '-start')[1] = '-' THEN -placed ELSE placed END NULLS LAST,
    start_at DESC,
    boot DESC,
    no DESC
LIMIT $limit OFFSET $offset
