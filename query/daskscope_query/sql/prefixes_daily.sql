-- reads: groups, groups_before, clusters, clusters_before
-- The roll-up of one day: what the day added to each task group, by user and prefix.
WITH users AS (
    SELECT cluster, arg_max("user", (boot, seq)) AS "user"
    FROM (FROM clusters UNION ALL BY NAME FROM clusters_before)
    GROUP BY cluster
),
-- A snapshot no newer than one of an earlier day came late and adds nothing.
grown AS (
    SELECT g.*, b.seq IS NOT NULL AS known, b.n_tasks AS old_n_tasks, b.nbytes AS old_nbytes, b.action_us AS old_action_us
    FROM groups g
    LEFT JOIN groups_before b USING (cluster, boot, no)
    WHERE b.seq IS NULL OR g.seq > b.seq
),
actions AS (
    SELECT "user", prefix, e.key AS action, capped(sum(sign::HUGEINT * e.value)) AS us
    FROM (
        SELECT cluster, prefix, 1 AS sign, unnest(map_entries(action_us)) AS e FROM grown
        UNION ALL
        SELECT cluster, prefix, -1, unnest(map_entries(old_action_us)) FROM grown WHERE known
    )
    LEFT JOIN users USING (cluster)
    GROUP BY ALL
),
spent AS (
    SELECT "user", prefix, map_from_entries(list((action, us) ORDER BY action) FILTER (us <> 0)) AS action_us
    FROM actions
    GROUP BY "user", prefix
),
made AS (
    SELECT
        "user",
        prefix,
        count(DISTINCT cluster) AS n_clusters,
        capped(sum(n_tasks::HUGEINT - coalesce(old_n_tasks, 0))) AS n_tasks,
        capped(sum(nbytes::HUGEINT - coalesce(old_nbytes, 0))) AS nbytes
    FROM grown
    LEFT JOIN users USING (cluster)
    GROUP BY "user", prefix
)
SELECT
    $account AS account,
    $day::DATE AS day,
    made.*,
    coalesce(spent.action_us, MAP {}::MAP(VARCHAR, BIGINT)) AS action_us
FROM made
LEFT JOIN spent ON spent."user" IS NOT DISTINCT FROM made."user" AND spent.prefix = made.prefix
ORDER BY made."user", made.prefix
