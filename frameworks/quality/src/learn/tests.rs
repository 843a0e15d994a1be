//! Tests that each algorithm reaches a known optimum, independently of the division into shards.

use super::*;

fn shards(kind: Generator, shape: Shape, noise: f64, seed: u64, count: usize) -> Vec<Data> {
    (0..count).map(|s| generate(kind, shape, noise, seed, s, count).unwrap()).collect()
}

#[test]
fn generated_data_does_not_depend_on_the_cut() {
    let shape = Shape { rows: 50, columns: 3, classes: 2 };
    for kind in [Generator::Linear, Generator::Halves, Generator::Clouds, Generator::Rings] {
        let whole = generate(kind, shape, 0.1, 7, 0, 1).unwrap();
        let parts = shards(kind, shape, 0.1, 7, 7);
        let labels: Vec<f64> = parts.iter().flat_map(|p| p.labels.clone()).collect();
        assert_eq!(labels, whole.labels, "{kind:?}");
        assert_ne!(generate(kind, shape, 0.1, 8, 0, 1).unwrap(), whole);
    }
}

#[test]
fn the_perceptron_learns_rings() {
    let shape = Shape { rows: 600, columns: 2, classes: 3 };
    let options = PerceptronOptions { hidden: vec![16, 16], steps: 4, ..PerceptronOptions::default() };
    let data = shards(Generator::Rings, shape, 0.1, 3, 5);
    let run =
        || LocalTraining::new(Algorithm::Perceptron(options.clone()), shape, data.clone()).unwrap().run(150).unwrap();
    let trained = run();
    assert!(trained.accuracy.unwrap() > 0.97, "{:?}", trained.accuracy);
    assert_eq!(trained.losses, run().losses);
    let Some(Model::Perceptron(net)) = trained.model else { panic!("no perceptron") };
    assert_eq!(net.predict(&[0.0, 1.0]), 0);
    assert_eq!(net.predict(&[-3.0, 0.0]), 2);
    let json = Model::Perceptron(net.clone()).to_json();
    assert_eq!(Model::from_json(&json).unwrap().predict(&[2.0, 0.0]), 1.0);
    let compact = Perceptron::from_bytes(&net.to_bytes()).unwrap();
    assert_eq!((compact.features(), compact.classes()), (2, 3));
    assert_eq!(compact.predict(&[2.0, 0.0]), 1);
}

#[test]
fn a_damaged_stored_model_is_refused() {
    let rows = ndarray::array![[0.0], [1.0]];
    let net = Perceptron::train(rows.clone(), &[0, 1], 2, &PerceptronOptions::default(), 3).unwrap();
    let bytes = net.to_bytes();
    assert!(Perceptron::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    assert!(Perceptron::from_bytes(&[]).is_err());
    let json = Model::Perceptron(net).to_json();
    let error = Model::from_json(&json.replacen("\"widths\":[1,", "\"widths\":[2,", 1)).unwrap_err();
    assert!(matches!(error, LearnError::Format(_)), "{error}");
    let error = Model::from_json(&json.replacen("\"version\":1", "\"version\":9", 1)).unwrap_err();
    assert_eq!(error.to_string(), "the model has version 9; this program reads version 1");
    assert!(Perceptron::train(rows.clone(), &[0, 1, 1], 2, &PerceptronOptions::default(), 3).is_err());
    assert!(Perceptron::train(rows, &[0, 2], 2, &PerceptronOptions::default(), 3).is_err());
}

#[test]
fn linear_regression_reaches_the_normal_equations() {
    // With one feature the solution is covariance over variance.
    let shape = Shape { rows: 300, columns: 1, classes: 0 };
    let data = shards(Generator::Linear, shape, 0.5, 5, 4);
    let xs: Vec<f64> = data.iter().flat_map(|d| d.to_dense().column(0).to_vec()).collect();
    let ys: Vec<f64> = data.iter().flat_map(|d| d.labels.clone()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&xs), mean(&ys));
    let covariance: f64 = xs.iter().zip(&ys).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = covariance / xs.iter().map(|x| (x - mx) * (x - mx)).sum::<f64>();
    let options = LinearOptions { l2: 0.0, ..LinearOptions::default() };
    let trained = LocalTraining::new(Algorithm::LinearRegression(options), shape, data).unwrap().run(100).unwrap();
    let Some(Model::Linear(model)) = trained.model else { panic!("no linear model") };
    assert!((model.weights[0] - slope).abs() < 1e-6, "{} and {slope}", model.weights[0]);
    assert!((model.offset - (my - slope * mx)).abs() < 1e-6);
}

#[test]
fn linear_regression_finds_many_weights_whatever_the_number_of_shards() {
    let shape = Shape { rows: 400, columns: 12, classes: 0 };
    let algorithm = Algorithm::LinearRegression(LinearOptions { l2: 0.0, ..LinearOptions::default() });
    let run = |count| {
        let data = shards(Generator::Linear, shape, 0.0, 9, count);
        LocalTraining::new(algorithm.clone(), shape, data).unwrap().run(600).unwrap()
    };
    let (one, many) = (run(1), run(13));
    assert!(one.losses[599] < 1e-9, "{}", one.losses[599]);
    // Sums in another order differ by rounding only.
    for (a, b) in one.losses.iter().zip(&many.losses).take(50) {
        assert!((a - b).abs() <= 1e-9 * a.abs(), "{a} and {b}");
    }
    assert_eq!(many.losses, run(13).losses);
}

#[test]
fn logistic_regression_reaches_the_log_odds() {
    // There is one yes-or-no feature: 3 of 4 labels are right with it, 1 of 4 without. The optimum is the logarithm of
    // the odds.
    let mut sparse = Sparse::new(1);
    let mut labels = Vec::new();
    for (x, label) in [(1, 1.0), (1, 1.0), (1, 1.0), (1, 0.0), (0, 0.0), (0, 0.0), (0, 0.0), (0, 1.0)] {
        sparse.push((x == 1).then_some((0, 1.0)));
        labels.push(label);
    }
    let data = Data::sparse(sparse, labels);
    let shape = Shape { rows: 8, columns: 1, classes: 2 };
    let algorithm = Algorithm::LogisticRegression(LinearOptions { l2: 0.0, learning_rate: 1.0 });
    let trained = LocalTraining::new(algorithm, shape, vec![data]).unwrap().run(400).unwrap();
    let Some(Model::Linear(model)) = trained.model else { panic!("no linear model") };
    assert!((model.offset - (1.0_f64 / 3.0).ln()).abs() < 1e-5, "{model:?}");
    assert!((model.weights[0] - 9.0_f64.ln()).abs() < 1e-5, "{model:?}");
    assert_eq!(trained.accuracy, Some(0.75));
}

#[test]
fn the_support_vector_machine_reaches_the_closed_form() {
    // Two points at -1 and 1 (deviation 1): min l2/2 w^2 + max(0, 1 - w)^2 is at w = 2 / (l2 + 2).
    let data = Data::dense(ndarray::array![[-1.0], [1.0]], vec![0.0, 1.0]);
    let shape = Shape { rows: 2, columns: 1, classes: 2 };
    let algorithm = Algorithm::LinearSvm(LinearOptions { l2: 0.5, learning_rate: 0.1 });
    let trained = LocalTraining::new(algorithm, shape, vec![data]).unwrap().run(200).unwrap();
    let Some(Model::Linear(model)) = trained.model else { panic!("no linear model") };
    assert!((model.weights[0] - 0.8).abs() < 1e-6 && model.offset.abs() < 1e-6, "{model:?}");
    assert_eq!((model.predict(&[3.0]), model.predict(&[-3.0])), (1.0, 0.0));
}

#[test]
fn k_means_finds_the_clouds() {
    let shape = Shape { rows: 500, columns: 4, classes: 5 };
    let data = shards(Generator::Clouds, shape, 0.0, 4, 6);
    let algorithm = Algorithm::KMeans(KMeansOptions { clusters: 5, seed: 1 });
    let trained = LocalTraining::new(algorithm.clone(), shape, data.clone()).unwrap().run(30).unwrap();
    assert!(trained.losses.windows(2).all(|w| w[1] <= w[0] + 1e-12));
    // Within a cloud each of four features has variance 1.
    let last = trained.losses[29];
    assert!((3.2..4.6).contains(&last), "{last}");
    let Some(model @ Model::Clusters(_)) = trained.model else { panic!("no clusters") };
    let mut counts = [[0; 5]; 5];
    for shard in &data {
        for (row, label) in shard.to_dense().rows().into_iter().zip(&shard.labels) {
            counts[*label as usize][model.predict(row.as_slice().unwrap()) as usize] += 1;
        }
    }
    // Clouds touch each other, but each has a cluster of its own.
    let best: usize = counts.iter().map(|of| of.iter().max().unwrap()).sum();
    assert!(best >= 475, "{counts:?}");
    let mut owners: Vec<_> = counts.iter().map(|of| (0..5).max_by_key(|c| of[*c]).unwrap()).collect();
    owners.sort_unstable();
    assert_eq!(owners, [0, 1, 2, 3, 4]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_rule() {
    let shape = Shape { rows: 10, columns: 2, classes: 1 };
    let refused = |algorithm: Algorithm, shape| Learner::new(&algorithm, shape).unwrap_err().to_string();
    let linear = LinearOptions::default();
    assert_eq!(
        refused(Algorithm::LinearSvm(linear), shape),
        "classes: linear-svm needs at least 2, and the labels name 1"
    );
    let bad = LinearOptions { learning_rate: f64::NAN, ..linear };
    assert!(refused(Algorithm::LinearRegression(bad), shape).starts_with("learning_rate: must be between"));
    let k = KMeansOptions { clusters: 11, seed: 0 };
    assert_eq!(refused(Algorithm::KMeans(k), shape), "clusters: more than there are rows, 10");
    assert_eq!(refused(Algorithm::KMeans(k), Shape { rows: 0, ..shape }), "rows: there must be at least one");
}

#[test]
fn one_tree_that_may_do_all_gives_the_means_of_the_leaves() {
    // A step at 0.5: the best tree of depth 1 splits there and predicts the mean of each side.
    let rows = ndarray::Array2::from_shape_fn((100, 1), |(row, _)| row as f64 / 100.0);
    let labels: Vec<f64> = (0..100).map(|row| if row <= 50 { -2.0 } else { 5.0 }).collect();
    let options = TreesOptions { depth: 1, learning_rate: 1.0, bins: 64, l2: 0.0, ..TreesOptions::default() };
    let shape = Shape { rows: 100, columns: 1, classes: 0 };
    let data = Data::dense(rows, labels);
    let parts = (0..2).map(|s| data.shard(s, 2)).collect();
    let trained = LocalTraining::new(Algorithm::BoostedTrees(options), shape, parts).unwrap().run(2).unwrap();
    assert!(trained.losses[1] < 0.3, "{:?}", trained.losses);
    let Some(Model::Forest(model)) = trained.model else { panic!("no forest") };
    assert!((model.predict(&[0.1]) + 2.0).abs() < 0.2 && (model.predict(&[0.9]) - 5.0).abs() < 0.2);
}

#[test]
fn boosted_trees_learn_bumps_and_a_new_worker_changes_nothing() {
    let shape = Shape { rows: 1500, columns: 6, classes: 0 };
    let data = shards(Generator::Bumps, shape, 0.5, 11, 3);
    let algorithm = Algorithm::BoostedTrees(TreesOptions { learning_rate: 0.3, ..TreesOptions::default() });
    let trained = LocalTraining::new(algorithm.clone(), shape, data.clone()).unwrap().run(80).unwrap();
    assert!(trained.losses.windows(2).all(|w| w[1] <= w[0] + 1e-12));
    // The labels' variance is about 24, that of the noise a quarter: half of it is the best there is.
    assert!(trained.losses[0] > 8.0 && trained.losses[79] < 0.7, "{} {}", trained.losses[0], trained.losses[79]);
    // A worker that joins later computes the same numbers as one that took part from the start.
    let mut local = LocalTraining::new(algorithm.clone(), shape, data.clone()).unwrap();
    for _ in 0..10 {
        local.iterate().unwrap();
    }
    let parameters = local.learner().parameters();
    let fresh = partial(&algorithm, &shape, &parameters, &data[1], &mut ShardCache::default()).unwrap();
    let mut old = ShardCache::default();
    for _ in 0..2 {
        assert_eq!(partial(&algorithm, &shape, &parameters, &data[1], &mut old).unwrap(), fresh);
    }
    let two = Shape { classes: 2, ..shape };
    let data = shards(Generator::Bumps, two, 0.5, 11, 3);
    let options = TreesOptions { task: Task::Classification, learning_rate: 0.3, ..TreesOptions::default() };
    let trained = LocalTraining::new(Algorithm::BoostedTrees(options), two, data).unwrap().run(40).unwrap();
    assert!(trained.accuracy.unwrap() > 0.95, "{:?}", trained.accuracy);
}

#[test]
fn topics_that_share_no_words_are_distinguished() {
    // Documents of words 0 to 4, and documents of words 5 to 9.
    let mut documents = Sparse::new(10);
    for document in 0..40_u32 {
        let first = 5 * (document % 2);
        documents.push((0..5).map(|word| (first + word, f64::from(1 + (document + word) % 3))));
    }
    let data = Data::sparse(documents, Vec::new());
    let shape = Shape { rows: 40, columns: 10, classes: 0 };
    let algorithm = Algorithm::Topics(TopicsOptions { topics: 2, seed: 3, ..TopicsOptions::default() });
    let run = |count: usize| {
        let parts = (0..count).map(|s| data.shard(s, count)).collect();
        LocalTraining::new(algorithm.clone(), shape, parts).unwrap().run(40).unwrap()
    };
    let trained = run(3);
    assert!(trained.losses.windows(2).all(|w| w[1] <= w[0] + 1e-6), "{:?}", trained.losses);
    let Some(Model::Topics(model)) = trained.model else { panic!("no topics") };
    let low: f64 = model.topics[0][..5].iter().sum();
    assert!(!(0.01..=0.99).contains(&low), "{model:?}");
    let document = |first: usize| (0..10).map(|w| f64::from(u8::from(w / 5 == first / 5))).collect::<Vec<_>>();
    assert_ne!(model.predict(&document(0)), model.predict(&document(5)));
    assert!((run(1).losses[39] - trained.losses[39]).abs() < 1e-9);
}

#[test]
fn every_learner_continues_from_its_stored_state() {
    let cases: Vec<(Algorithm, Generator, usize, f64)> = vec![
        (Algorithm::LinearRegression(LinearOptions::default()), Generator::Linear, 0, 0.1),
        (Algorithm::LogisticRegression(LinearOptions::default()), Generator::Halves, 2, 0.1),
        (Algorithm::LinearSvm(LinearOptions::default()), Generator::Halves, 2, 0.1),
        (Algorithm::KMeans(KMeansOptions::default()), Generator::Clouds, 8, 0.1),
        (Algorithm::Perceptron(PerceptronOptions::default()), Generator::Rings, 2, 0.1),
        (Algorithm::BoostedTrees(TreesOptions::default()), Generator::Bumps, 0, 0.1),
        (Algorithm::Topics(TopicsOptions::default()), Generator::Documents, 3, 0.0),
    ];
    for (algorithm, kind, classes, noise) in cases {
        let shape = Shape { rows: 200, columns: 8, classes };
        let data = shards(kind, shape, noise, 1, 3);
        let mut whole = LocalTraining::new(algorithm.clone(), shape, data.clone()).unwrap();
        let losses: Vec<f64> = (0..12).map(|_| whole.iterate().unwrap().1).collect();
        assert!(losses[11] < losses[0], "{}: {losses:?}", algorithm.name());
        let mut first = LocalTraining::new(algorithm.clone(), shape, data.clone()).unwrap();
        for _ in 0..5 {
            first.iterate().unwrap();
        }
        let kept = postcard::to_stdvec(first.learner()).unwrap();
        let mut second = LocalTraining::new(algorithm.clone(), shape, data).unwrap();
        second.resume(postcard::from_bytes(&kept).unwrap());
        let rest: Vec<f64> = (5..12).map(|_| second.iterate().unwrap().1).collect();
        assert_eq!(rest, losses[5..], "{}", algorithm.name());
    }
}

#[test]
fn a_loss_that_is_not_a_number_is_an_error_of_every_algorithm() {
    let shape = Shape { rows: 12, columns: 3, classes: 2 };
    let good = generate(Generator::Halves, shape, 0.1, 1, 0, 1).unwrap();
    let with = |change: &dyn Fn(&mut Data)| {
        let mut data = good.clone();
        change(&mut data);
        data
    };
    let feature = |data: &mut Data| {
        if let Rows::Dense(rows) = &mut data.rows {
            rows[[7, 1]] = f64::NAN;
        }
    };
    let label = |data: &mut Data| data.labels[7] = 1e200;
    let mut documents = Sparse::new(3);
    (0..12).for_each(|row| documents.push([(row % 3, if row == 7 { f64::NAN } else { 1.0 })]));
    let documents = Data::sparse(documents, Vec::new());
    let run = |algorithm: &Algorithm, data: Data| {
        let parts = (0..3).map(|s| data.shard(s, 3)).collect();
        LocalTraining::new(algorithm.clone(), shape, parts).unwrap().run(4)
    };
    let bad = |algorithm: Algorithm, data: Data| {
        let failed = run(&algorithm, data);
        assert!(matches!(failed, Err(LearnError::NotANumber { .. })), "{}: {failed:?}", algorithm.name());
    };
    bad(Algorithm::LinearRegression(LinearOptions::default()), with(&feature));
    bad(Algorithm::LogisticRegression(LinearOptions::default()), with(&feature));
    bad(Algorithm::LinearSvm(LinearOptions::default()), with(&feature));
    bad(Algorithm::KMeans(KMeansOptions { clusters: 2, ..KMeansOptions::default() }), with(&feature));
    bad(Algorithm::Perceptron(PerceptronOptions::default()), with(&feature));
    bad(Algorithm::BoostedTrees(TreesOptions::default()), with(&label));
    // Data that is not a count is rejected before there is a loss.
    let topics = Algorithm::Topics(TopicsOptions { topics: 2, ..TopicsOptions::default() });
    let failed = run(&topics, documents);
    assert!(matches!(&failed, Err(LearnError::Invalid { item, .. }) if item == "data"), "{failed:?}");
}

type Compute = fn(&Algorithm, &Shape, &[f64], &Data, &mut ShardCache) -> Result<Vec<f64>, LearnError>;

#[test]
fn a_score_on_the_training_data_is_the_loss_of_the_model_that_the_parameters_are() {
    let of = |rows, columns, classes| Shape { rows, columns, classes };
    let linear = LinearOptions { l2: 0.0, ..LinearOptions::default() };
    let trees = TreesOptions { task: Task::Classification, ..TreesOptions::default() };
    let net = PerceptronOptions { l2: 0.0, steps: 1, ..PerceptronOptions::default() };
    for (algorithm, kind, shape) in [
        (Algorithm::LinearRegression(linear), Generator::Linear, of(60, 3, 0)),
        (Algorithm::LogisticRegression(linear), Generator::Halves, of(60, 3, 2)),
        (Algorithm::LinearSvm(linear), Generator::Halves, of(60, 3, 2)),
        (Algorithm::LogisticRegression(linear), Generator::Clouds, of(60, 3, 4)),
        (Algorithm::LinearSvm(linear), Generator::Clouds, of(60, 3, 4)),
        (Algorithm::BoostedTrees(trees), Generator::Clouds, of(60, 3, 4)),
        (Algorithm::KMeans(KMeansOptions { clusters: 3, seed: 1 }), Generator::Clouds, of(60, 3, 3)),
        (Algorithm::Perceptron(net), Generator::Rings, of(60, 3, 3)),
        (Algorithm::BoostedTrees(trees), Generator::Bumps, of(60, 5, 2)),
    ] {
        let data = shards(kind, shape, 0.2, 3, 2);
        let mut learner = Learner::new(&algorithm, shape).unwrap();
        let mut memories = [ShardCache::default(), ShardCache::default()];
        let (mut scored, mut iterations) = (None, 0);
        while iterations < 6 {
            let parameters = learner.parameters();
            let mut each = |compute: Compute| -> Vec<Vec<f64>> {
                let shards = data.iter().zip(&mut memories);
                shards.map(|(data, memory)| compute(&algorithm, &shape, &parameters, data, memory).unwrap()).collect()
            };
            if let Some(found) = combined(&algorithm, &each(score)).unwrap() {
                scored = Some((found, model_of(&algorithm, &shape, &parameters).unwrap()));
            }
            let Round::Iteration { loss, accuracy, retried, .. } = learner.fold(&each(partial)).unwrap() else {
                continue;
            };
            iterations += 1;
            let (Score { loss: score, accuracy: right }, model) = scored.take().unwrap();
            if retried {
                continue;
            }
            let name = algorithm.name();
            assert!((score - loss).abs() < 1e-12 * (1.0 + loss) && right == accuracy, "{name}: {score} {loss}");
            let answers = data.iter().flat_map(|d| d.rows().zip(d.labels.clone()));
            let hits = answers.filter(|(row, label)| model.predict(row) == *label).count() as f64 / 60.0;
            assert!(right.is_none_or(|right| right == hits), "{name}: {right:?} and {hits}");
        }
    }
}

#[test]
fn models_of_several_classes_that_know_nothing_reach_the_frequencies_of_the_classes() {
    // The one feature carries no information: the best prediction is the frequency of each class.
    let labels = vec![0.0, 0.0, 0.0, 1.0, 1.0, 2.0];
    let data = Data::dense(ndarray::Array2::zeros((6, 1)), labels);
    let shape = Shape { rows: 6, columns: 1, classes: 3 };
    let frequencies = [3.0 / 6.0, 2.0 / 6.0, 1.0 / 6.0_f64];
    let options = LinearOptions { l2: 0.0, ..LinearOptions::default() };
    let run = |algorithm| LocalTraining::new(algorithm, shape, vec![data.clone()]).unwrap().run(300).unwrap();
    let softmax = run(Algorithm::LogisticRegression(options));
    let entropy: f64 = frequencies.iter().map(|p| -p * p.ln()).sum();
    assert!((softmax.losses[299] - entropy).abs() < 1e-9, "{:?}", softmax.losses.last());
    let found = softmax.model.unwrap().probabilities(&[0.0]).unwrap();
    assert!(found.iter().zip(frequencies).all(|(p, f)| (p - f).abs() < 1e-4), "{found:?}");
    // For one class against the others the best output is 2p - 1, where the squared hinge costs 4p(1 - p).
    let svm = run(Algorithm::LinearSvm(options));
    let least: f64 = frequencies.iter().map(|p| 4.0 * p * (1.0 - p)).sum();
    assert!((svm.losses[299] - least).abs() < 1e-9, "{:?}", svm.losses.last());
    assert_eq!(svm.model.unwrap().predict(&[0.0]), 0.0);
}

#[test]
fn several_classes_are_learnt_whatever_the_shards_and_better_than_by_chance() {
    let shape = Shape { rows: 400, columns: 3, classes: 4 };
    let trees = TreesOptions { task: Task::Classification, ..TreesOptions::default() };
    for algorithm in [
        Algorithm::LogisticRegression(LinearOptions::default()),
        Algorithm::LinearSvm(LinearOptions::default()),
        Algorithm::BoostedTrees(trees),
    ] {
        let run = |count| {
            let data = shards(Generator::Clouds, shape, 0.0, 3, count);
            LocalTraining::new(algorithm.clone(), shape, data).unwrap().run(40).unwrap()
        };
        let (one, five) = (run(1), run(5));
        let name = algorithm.name();
        assert!(five.accuracy.unwrap() > 0.9, "{name}: {:?}", five.accuracy);
        assert!(five.losses[39] < five.losses[0] / 2.0, "{name}: {:?}", five.losses);
        if name != "boosted-trees" {
            // The bins of trees come from a sample of each shard.
            assert!((one.losses[39] - five.losses[39]).abs() < 1e-9, "{name}");
        }
        let model = five.model.unwrap();
        let back = Model::from_json(&model.to_json()).unwrap();
        assert_eq!((back.predict(&[1.0, 2.0, 3.0]), back.width()), (model.predict(&[1.0, 2.0, 3.0]), 3), "{name}");
    }
}

#[test]
fn the_first_trees_of_three_classes_have_the_leaves_that_the_formula_gives() {
    // Four rows of each class, at 0, 1 and 2. All classes have probability 1/3 at first, so the derivatives are -2/3
    // for rows of the class and 1/3 for others, and the second ones 2/9.
    let values: Vec<f64> = (0..12).map(|row| f64::from(row / 4)).collect();
    let rows = ndarray::Array2::from_shape_vec((12, 1), values.clone()).unwrap();
    let shape = Shape { rows: 12, columns: 1, classes: 3 };
    let options = TreesOptions { task: Task::Classification, depth: 1, ..TreesOptions::default() };
    let local = |iterations| {
        let data = vec![Data::dense(rows.clone(), values.clone())];
        LocalTraining::new(Algorithm::BoostedTrees(options), shape, data).unwrap().run(iterations).unwrap()
    };
    let once = local(1);
    assert!((once.losses[0] - 3_f64.ln()).abs() < 1e-12);
    let Some(Model::Forest(forest)) = once.model else { panic!("no forest") };
    assert_eq!((forest.trees.len(), forest.bases.len()), (3, 3));
    // Class 0 splits off the rows at 0, and class 2 those at 2; class 1 in the middle cannot be split off by one cut.
    let leaf = |rows: f64, first: f64| -0.1 * rows * first / (rows * 2.0 / 9.0 + 1.0);
    let (own, others) = (leaf(4.0, -2.0 / 3.0), leaf(8.0, 1.0 / 3.0));
    for (tree, leaves) in [(0, [own, others]), (2, [others, own])] {
        let found = [forest.trees[tree][3], forest.trees[tree][5]];
        assert!(found.iter().zip(leaves).all(|(f, l)| (f - l).abs() < 1e-12), "{tree}: {found:?} and {leaves:?}");
    }
    let trained = local(60);
    assert_eq!(trained.accuracy, Some(1.0));
    let model = trained.model.unwrap();
    assert_eq!([0.0, 1.0, 2.0].map(|x| model.predict(&[x])), [0.0, 1.0, 2.0]);
    let sum: f64 = model.probabilities(&[1.0]).unwrap().iter().sum();
    assert!((sum - 1.0).abs() < 1e-12);
}
