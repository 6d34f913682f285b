-- reads: groups, exceptions
-- One cluster's task prefixes as `prefixes` has those of a team, but from its task groups: over all of its life, or
-- of one `computation` ('<boot>-<no>'). `n_given_up`: tasks of groups of which none was ever done when all of them were
-- forgotten, and not because one of their computation failed.
WITH mine AS (
    SELECT *
    FROM groups
    WHERE cluster = $cluster AND ($computation::VARCHAR IS NULL OR boot || '-' || computation = $computation)
),
-- Dask forgets a failed task's state, its exception stays. What no computation has made (scatter) was never to be done.
failed AS (
    SELECT g.boot, g.computation, g.prefix, sum(e.count) AS n
    FROM exceptions e
    JOIN groups g ON g.cluster = e.cluster AND g.boot = e.boot AND g.no = e.group_no
    WHERE e.cluster = $cluster
    GROUP BY ALL
),
given_up AS (
    SELECT prefix, capped(sum(n_tasks)) AS n
    FROM mine
    WHERE start_at IS NULL
      AND computation IS NOT NULL
      AND states['forgotten'] > 0
      AND list_sum(map_values(states)) = states['forgotten']
      AND NOT EXISTS (SELECT 1 FROM failed f WHERE f.boot = mine.boot AND f.computation = mine.computation)
    GROUP BY prefix
),
known AS (SELECT prefix, capped(sum(n)) AS n FROM failed GROUP BY prefix),
actions AS (
    SELECT prefix, e.key AS action, capped(sum(e.value)) AS us
    FROM (SELECT prefix, unnest(map_entries(action_us)) AS e FROM mine)
    GROUP BY ALL
),
spent AS (
    SELECT prefix, map_from_entries(list((action, us) ORDER BY action) FILTER (us <> 0)) AS action_us, capped(sum(us)) AS us
    FROM actions
    GROUP BY prefix
),
made AS (
    SELECT prefix, 1::BIGINT AS n_clusters, capped(sum(n_tasks)) AS n_tasks, capped(sum(nbytes)) AS nbytes
    FROM mine
    GROUP BY prefix
)
SELECT
    made.*,
    coalesce(spent.action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us,
    coalesce(spent.us, 0) AS us,
    coalesce(given_up.n, 0) AS n_given_up,
    coalesce(known.n, 0) AS n_tasks_erred
FROM made
LEFT JOIN spent USING (prefix)
LEFT JOIN given_up USING (prefix)
LEFT JOIN known USING (prefix)
ORDER BY CASE $sort WHEN 'bytes' THEN nbytes WHEN 'count' THEN n_tasks ELSE us END DESC, prefix
LIMIT $limit OFFSET $offset
